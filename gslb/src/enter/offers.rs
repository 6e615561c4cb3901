//! Addresses with their tokens, as an answer has them.

use auth_core::token::{Own, Shared, mint_each};
use gslb_core::listener::Listener;

use super::render::{self, Form};
use super::{Chosen, Refusal, numbers};
use crate::known::Minter;

/// Writes the addresses, each with a token of its own.
pub(super) fn put(
    form: Form,
    chosen: &Chosen<'_>,
    minter: &Minter,
    shared: &Shared<'_>,
    answer: &mut Vec<u8>,
) -> Result<(), Refusal> {
    if form == Form::Json {
        answer.extend_from_slice(b"\"addresses\":[");
    }
    match *chosen {
        [Some(a), Some(b), Some(c)] => put_each(form, [a, b, c], minter, shared, answer)?,
        [Some(a), Some(b), None] => put_each(form, [a, b], minter, shared, answer)?,
        [Some(a), None, _] => put_each(form, [a], minter, shared, answer)?,
        [None, ..] => {}
    }
    if form == Form::Json {
        answer.push(b']');
    }
    Ok(())
}

fn put_each<const N: usize>(
    form: Form,
    listeners: [&Listener; N],
    minter: &Minter,
    shared: &Shared<'_>,
    answer: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let mut numbers = [[0; 16]; N];
    numbers::fill(numbers.as_flattened_mut()).map_err(|_| Refusal::NoRandom)?;
    let epoch = minter.epoch(shared.iat_s);
    let keys = listeners.map(|it| minter.key(shared.app, it.link_id(), epoch));
    if keys.iter().any(Result::is_err) {
        return Err(Refusal::NoKeys);
    }
    let own = std::array::from_fn(|at| Own {
        link: listeners[at].link_id(),
        jti: &numbers[at],
        key: keys[at].as_deref().expect("none of them is missing"),
    });
    mint_each::<N>(shared, own, |at, token| {
        if at > 0 && form == Form::Json {
            answer.push(b',');
        }
        render::put_address(form, listeners[at], answer);
        token.put(answer);
        render::put_offer_end(form, answer);
    });
    Ok(())
}
