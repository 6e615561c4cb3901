//! Addresses with their tokens, as an answer has them.

use auth_core::token::{Own, Shared, mint_each};
use gslb_core::listener::Listener;

use super::render::{self, Form};
use super::{Chosen, Refusal, numbers};
use crate::known::Minter;

/// What tokens are made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Makings<'a> {
    pub(super) minter: &'a Minter,
    pub(super) shared: Shared<'a>,
}

/// Writes the addresses, each with a token of its own.
pub(super) fn put(
    form: &mut Form<'_>,
    chosen: &Chosen<'_>,
    makings: Makings<'_>,
    answer: &mut Vec<u8>,
) -> Result<(), Refusal> {
    render::put_offers_start(form, answer);
    match *chosen {
        [Some(a), Some(b), Some(c)] => put_each(form, [a, b, c], makings, answer)?,
        [Some(a), Some(b), None] => put_each(form, [a, b], makings, answer)?,
        [Some(a), None, _] => put_each(form, [a], makings, answer)?,
        [None, ..] => {}
    }
    render::put_offers_end(form, answer);
    Ok(())
}

fn put_each<const N: usize>(
    form: &mut Form<'_>,
    listeners: [&Listener; N],
    makings: Makings<'_>,
    answer: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let Makings { minter, shared } = makings;
    let epoch = minter.epoch(shared.iat_s);
    let keys = listeners.map(|it| minter.key(shared.app, it.link_id(), epoch));
    if keys.iter().any(Result::is_err) {
        return Err(Refusal::NoKeys);
    }
    let mut numbers = [[0; 16]; N];
    numbers::draw(&mut numbers)?;
    let own = std::array::from_fn(|at| Own {
        link: listeners[at].link_id(),
        jti: &numbers[at],
        key: keys[at].as_deref().expect("none of them is missing"),
    });
    mint_each::<N>(&shared, own, |at, token| {
        if at > 0 {
            render::put_between(form, answer);
        }
        render::put_address(form, listeners[at], answer);
        token.put(answer);
        render::put_offer_end(form, answer);
    });
    Ok(())
}
