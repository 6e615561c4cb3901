//! Answers in process: from the bytes of a question to the bytes of its answer, without HTTP.

use std::cell::Cell;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};

use anyhow::{Context, ensure};
use auth_core::app::TicketAlg;
use gslb::enter::{Ask, Question};
use kit::clock::Clock;

use super::site::{Site, Who};
use crate::line::Line;
use crate::timing::interleaved;

/// The lines of [`ANSWER`](super::ANSWER).
pub(super) async fn run() -> anyhow::Result<Vec<Line>> {
    let site = Site::open(&Clock::system()).await?;
    let questions = [Who::Open, Who::OpenOne, Who::Ticket(TicketAlg::Hs256)]
        .map(|who| site.question(who, 1))
        .into_iter()
        .collect::<anyhow::Result<Vec<String>>>()?;
    let [open, one, ticket] = &*questions else { unreachable!("there are three questions") };
    for (question, addresses) in [(open, 3), (one, 1), (ticket, 3)] {
        site.check(&answer(&site, question)?, addresses).await?;
    }

    let refused = Cell::new(0);
    let rates = {
        let mut read = asking_read(&site, one, &refused)?;
        let [mut open, mut one, mut ticket] =
            [open, one, ticket].map(|question| asking(&site, question, &refused));
        interleaved(&mut [&mut open, &mut read, &mut one, &mut ticket])
    };
    ensure!(refused.get() == 0, "{} questions were refused", refused.get());
    site.close().await?;
    let lines = super::ANSWER.iter().copied().zip(rates);
    Ok(lines.map(|(name, rate)| Line::alone(name, rate, "1/s/core")).collect())
}

/// Asks the same again and again, into the same memory, and counts refusals.
fn asking(site: &Site, question: &str, refused: &Cell<u64>) -> impl FnMut() {
    let mut answer = Vec::new();
    move || {
        answer.clear();
        let question = black_box(question_of(question));
        let answered = site.answerer.answer(&question, &mut answer);
        refused.set(refused.get() + u64::from(answered.is_err()));
        black_box(&answer);
    }
}

/// The same, read once.
fn asking_read(site: &Site, question: &str, refused: &Cell<u64>) -> anyhow::Result<impl FnMut()> {
    let question = question_of(question);
    let ask = Ask::read(question.body)?;
    let mut answer = Vec::new();
    Ok(move || {
        answer.clear();
        let answered = site.answerer.answer_read(black_box(&ask), &question, &mut answer);
        refused.set(refused.get() + u64::from(answered.is_err()));
        black_box(&answer);
    })
}

fn question_of(body: &str) -> Question<'_> {
    Question { body: body.as_bytes(), from: IpAddr::V4(Ipv4Addr::LOCALHOST), api_key: None }
}

fn answer(site: &Site, question: &str) -> anyhow::Result<String> {
    let mut answer = Vec::new();
    site.answerer.answer(&question_of(question), &mut answer).context("there is no answer")?;
    Ok(String::from_utf8(answer)?)
}
