//! Answers in process: from the bytes of a question to the bytes of its answer, without HTTP.

use std::cell::Cell;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use anyhow::{Context, ensure};
use auth_core::app::TicketAlg;
use gslb::config::{Rate, Segments};
use gslb::enter::{Ask, Question};
use kit::clock::Clock;

use super::site::{Site, Who};
use crate::line::Line;
use crate::timing::interleaved;

/// More than anybody asks.
const QUESTIONS_PER_S: u32 = 1_000_000_000;
/// Ranges of the table of addresses: as many as all of IPv4 has, in size.
const RANGES: u32 = 400_000;
/// Addresses of a range.
const RANGE: u32 = 256;
/// The first of all.
const FIRST: u32 = 0x0100_0000;
/// China's three carriers, and one more.
const SYSTEMS: [u32; 4] = [4134, 4837, 9808, 4808];
/// Viewers that ask in turn, each from a range of its own.
const VIEWERS: u32 = 4_096;

/// Those lines of [`ANSWER`](super::ANSWER) that are asked for by `name`.
pub(super) async fn run(name: &str) -> anyhow::Result<Vec<Line>> {
    let clock = Clock::system();
    let bare = Site::open(&clock, |_| {}).await?;
    let folder = tempfile::tempdir()?;
    let table = folder.path().join("asn.csv");
    std::fs::write(&table, ranges())?;
    let full = Site::open(&clock, |config| everything_on(config, table)).await?;
    let questions = [Who::Open, Who::OpenOne, Who::Ticket(TicketAlg::Hs256)]
        .map(|who| bare.question(who, 1))
        .into_iter()
        .collect::<anyhow::Result<Vec<String>>>()?;
    let [open, one, ticket] = &*questions else { unreachable!("there are three questions") };
    for (site, question, addresses) in
        [(&bare, open, 3), (&bare, one, 1), (&bare, ticket, 3), (&full, open, 3)]
    {
        site.check(&answer(site, question)?, addresses).await?;
    }

    let refused = Cell::new(0);
    let rates = {
        let mut read = asking_read(&bare, one, &refused)?;
        let [mut three, mut one, mut ticket] =
            [open, one, ticket].map(|question| asking(&bare, question, nobody(), &refused));
        let mut all = asking(&full, open, everybody(), &refused);
        let works: [&mut dyn FnMut(); 5] = [&mut three, &mut read, &mut one, &mut ticket, &mut all];
        let works = super::ANSWER.iter().copied().zip(works);
        let (names, mut works): (Vec<_>, Vec<_>) =
            works.filter(|it| super::is_asked(name, it.0)).unzip();
        let rates = interleaved(&mut works);
        names.into_iter().zip(rates).collect::<Vec<_>>()
    };
    ensure!(refused.get() == 0, "{} questions were refused", refused.get());
    bare.close().await?;
    full.close().await?;
    Ok(rates.into_iter().map(|(name, rate)| Line::alone(name, rate, "1/s/core")).collect())
}

/// What a gslb in production has on: rates that nobody exceeds, a table of addresses, three bases.
fn everything_on(config: &mut gslb::Config, table: PathBuf) {
    config.rate = Rate {
        enabled: true,
        per_s: QUESTIONS_PER_S,
        burst: QUESTIONS_PER_S,
        all_per_s: QUESTIONS_PER_S,
        ..Rate::default()
    };
    config.place.files = vec![table];
    let base = |it| Segments {
        base: format!("https://cdn-{it}.example/danmaku"),
        weight: it,
        region: String::new(),
    };
    config.segments = (1..4).map(base).collect();
}

/// A table of addresses as ip-location-db has it, its systems in turn.
fn ranges() -> String {
    let mut text = String::new();
    for (number, asn) in (0..RANGES).zip(SYSTEMS.iter().cycle()) {
        let start = FIRST + number * RANGE;
        let [start, end] = [start, start + RANGE - 1].map(Ipv4Addr::from_bits);
        text.push_str(&format!("{start},{end},{asn},example\n"));
    }
    text
}

/// Everybody is on this machine.
fn nobody() -> Vec<IpAddr> {
    vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]
}

/// Viewers all over the table.
fn everybody() -> Vec<IpAddr> {
    let range = |it: u32| it.wrapping_mul(0x9e37_79b9) % RANGES;
    (0..VIEWERS).map(|it| Ipv4Addr::from_bits(FIRST + range(it) * RANGE + 7).into()).collect()
}

/// Asks the same again and again, for one viewer after the other, into the same memory, and counts
/// refusals.
fn asking(site: &Site, question: &str, viewers: Vec<IpAddr>, refused: &Cell<u64>) -> impl FnMut() {
    let mut answer = Vec::new();
    let mut viewer = 0;
    move || {
        answer.clear();
        viewer = (viewer + 1) % viewers.len();
        let question = Question { from: viewers[viewer], ..question_of(question) };
        let answered = site.answerer.answer(black_box(&question), &mut answer);
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
