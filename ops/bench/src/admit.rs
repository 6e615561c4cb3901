//! Admission: how many comments a chatserver's core judges.
//!
//! `admit.judge` is everything between a link's entry and its verdict: shape, state, rate, repeats
//! in the room and of the sender, 100,000 listed words, links and contacts, the room's quota; what
//! is admitted has its id then, and waits for the bus. `admit.turn` is that with the bus's answer
//! and the reply; `admit.evidence` is that with the evidence ledger, up to the bytes that its writer
//! hands to the disk, beside the same without. `admit.p99` is the time of one judgement.
//! `admit.words` reads and scans alone.
//!
//! The peer is the plain `aho-corasick` of the same words over the same texts as they are: it
//! folds nothing, so that it finds no word in disguise.
//!
//! The texts are the sample's, or those of a recording that `BENCH_COMMENTS` names.

mod evidence;
mod scene;
mod texts;

use std::hint::black_box;

use aho_corasick::AhoCorasick;
use anyhow::ensure;
use chatserver_core::words::Scanner;

use crate::cpu;
use crate::line::Line;
use crate::timing::{ROUNDS, median};
use scene::{Scene, TURN_COMMENTS};
use texts::Texts;

/// Turns of one round.
const TURNS: usize = 100;
const PEER: &str = "aho-corasick over the text as it is";

/// `admit.…`.
pub(crate) fn run() -> anyhow::Result<Vec<Line>> {
    let texts = Texts::new()?;
    let mut scene = Scene::new(&texts)?;
    let peer = AhoCorasick::new(texts.words.iter().map(|it| &it.text))?;
    let mut scanner = Scanner::default();
    let [mut judge, mut turn, mut witnessed, mut words, mut plain] = [const { Vec::new() }; 5];
    for _ in 0..ROUNDS {
        let (judged, whole) = scene.play(TURNS)?;
        judge.push(judged);
        turn.push(whole);
        witnessed.push(scene.play_witnessed(TURNS)?);
        words.push(texts.rate(|it| {
            black_box(scanner.scan(it, &[&scene.words]).len());
        }));
        plain.push(texts.rate(|it| {
            black_box(peer.find_iter(it).count());
        }));
    }
    ensure!(scene.admitted() > 0.5, "only {} of all comments were admitted", scene.admitted());
    let (evidence, without) = (median(&mut witnessed), median(&mut turn));
    let peer = median(&mut plain);
    let beside = |name: &str, rates: &mut [f64]| {
        let value = median(rates);
        let (name, ratio) = (format!("admit.{name}"), Some(value / peer));
        Line { name, value, unit: "1/s/core", peer: Some(PEER), ratio }
    };
    Ok(vec![
        beside("judge", &mut judge),
        beside("turn", &mut turn),
        beside("words", &mut words),
        Line {
            name: "admit.evidence".to_owned(),
            value: evidence,
            unit: "1/s/core",
            peer: Some("admit.turn, without a ledger"),
            ratio: Some(evidence / without),
        },
        Line::alone("admit.plain", peer, "1/s/core"),
        Line::alone("admit.p99", p99_ns(&mut scene)?, "ns"),
        Line::alone("admit.admitted", scene.admitted(), "of all"),
    ])
}

/// The time that all but a hundredth of the judgements take, by the clock.
fn p99_ns(scene: &mut Scene) -> anyhow::Result<f64> {
    let mut times = Vec::with_capacity(TURNS * TURN_COMMENTS);
    for _ in 0..TURNS {
        for input in scene.comments() {
            let start = cpu::nanos();
            scene.judge(input);
            times.push(cpu::nanos() - start);
        }
        scene.answer(|_, _| {})?;
    }
    times.sort_unstable();
    Ok(times[times.len() * 99 / 100] as f64)
}
