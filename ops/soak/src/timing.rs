//! Whether the time it takes to refuse a token tells how much of its MAC was right.
//!
//! As dudect does it (Reparaz, Balasch, Verbauwhede, 2017): tokens of two classes come in random
//! order, every refusal is timed, and Welch's t says whether the classes differ. What is found
//! must be found again with fresh samples, twice as many each time: a leak grows, chance does not.
//! The same procedure must find a comparison that stops at the first wrong byte; otherwise the
//! machine is too noisy for the run to mean anything, and it fails.

mod subject;
mod welch;

use auth_core::mac::Alg;
use drill::{Line, progress};
use kit::clock::Clock;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::cli::Size;
use subject::{Compare, MAC_BYTES, Subject};
use welch::{Class, Timed};

/// Classes whose |t| is below are taken for the same, as everywhere in this trade.
const T_MAX: f64 = 4.5;
/// Rounds that must all find a leak before it counts.
const ROUNDS: u32 = 3;
/// Tokens made at a time.
const POOL: usize = 4096;

/// What two classes of wrong MACs differ in.
#[derive(Clone, Copy, Debug)]
enum Question {
    /// The first byte is wrong, or the last.
    FirstOrLast,
    /// The last byte is wrong, or all are random.
    LastOrAll,
}

impl Question {
    const ALL: [Self; 2] = [Self::FirstOrLast, Self::LastOrAll];

    /// A wrong MAC of a class.
    fn spoil(self, class: Class, right: &[u8; MAC_BYTES], rng: &mut SmallRng) -> [u8; MAC_BYTES] {
        // Drawn for every class, so that both cost the same before they are timed.
        let random: [u8; MAC_BYTES] = rng.random();
        let flip = |at: usize| {
            let mut mac = *right;
            mac[at] ^= random[0] | 1;
            mac
        };
        match (self, class) {
            (Self::FirstOrLast, Class::A) => flip(0),
            (Self::FirstOrLast, Class::B) | (Self::LastOrAll, Class::A) => flip(MAC_BYTES - 1),
            (Self::LastOrAll, Class::B) => random,
        }
    }
}

/// Asks both questions of every algorithm with 50,000 or 2,000,000 samples, and of a leaky
/// comparison.
pub(crate) async fn run(size: Size, line: &mut Line) -> anyhow::Result<()> {
    let samples = size.pick(50_000, 2_000_000);
    let seed = line.seed();
    let found = tokio::task::spawn_blocking(move || measure(samples, seed)).await??;
    line.figure("samples", samples);
    line.figure("t", found.t);
    line.figure("t_leaky", found.t_leaky);
    line.check(found.t < T_MAX, || {
        format!("{} takes a time that tells, t {:.1}", found.of, found.t)
    });
    line.check(found.t_leaky >= T_MAX, || {
        format!("a leak would not be noticed here: t {:.1} of one", found.t_leaky)
    });
    Ok(())
}

/// The worst of the honest subjects, and the best hidden of the leaky ones.
#[derive(Debug)]
struct Found {
    t: f64,
    of: String,
    t_leaky: f64,
}

fn measure(samples: usize, seed: u64) -> anyhow::Result<Found> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut found = Found { t: 0.0, of: String::new(), t_leaky: f64::INFINITY };
    for question in Question::ALL {
        for &alg in Alg::ALL {
            let t = t_of(&Subject::new(alg, Compare::Real)?, question, samples, &mut rng);
            progress(&format!("  {} {question:?}: t {t:.2}", alg.name()));
            if t >= found.t {
                found.t = t;
                found.of = format!("{} {question:?}", alg.name());
            }
        }
        let leaky = Subject::new(Alg::HmacSha256, Compare::Leaky)?;
        let t = t_of(&leaky, question, samples, &mut rng);
        progress(&format!("  leaky {question:?}: t {t:.2}"));
        found.t_leaky = found.t_leaky.min(t);
    }
    Ok(found)
}

/// The smallest |t| of all rounds; the first that is below the bound ends them.
fn t_of(subject: &Subject, question: Question, samples: usize, rng: &mut SmallRng) -> f64 {
    let mut smallest = f64::INFINITY;
    for round in 0..ROUNDS {
        let times = time(subject, question, samples << round, rng);
        smallest = smallest.min(welch::t_max(&times));
        if smallest < T_MAX {
            break;
        }
    }
    smallest
}

/// Refuses so many tokens, classes mixed by chance, and says how long each took.
fn time(subject: &Subject, question: Question, samples: usize, rng: &mut SmallRng) -> Vec<Timed> {
    let clock = Clock::system();
    let mut judge = subject.judge();
    let mut times = Vec::with_capacity(samples);
    // One place for every token: none is nearer or better aligned than another.
    let mut text = String::with_capacity(subject.text_bytes());
    while times.len() < samples {
        let pool: Vec<(Class, String)> = (0..POOL.min(samples - times.len()))
            .map(|_| {
                let class = if rng.random() { Class::A } else { Class::B };
                (class, subject.with_mac(&question.spoil(class, subject.mac(), rng)))
            })
            .collect();
        for (class, token) in &pool {
            text.clear();
            text.push_str(token);
            let start = clock.nanos();
            judge.refuse(&text);
            times.push(Timed { class: *class, ns: clock.nanos() - start });
        }
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_differ_from_the_right_mac_where_they_say() {
        let mut rng = SmallRng::seed_from_u64(7);
        let right = [0x5a; MAC_BYTES];
        let mut wrong = |question: Question, class| -> Vec<usize> {
            let mac = question.spoil(class, &right, &mut rng);
            (0..MAC_BYTES).filter(|it| mac[*it] != right[*it]).collect()
        };

        assert_eq!(wrong(Question::FirstOrLast, Class::A), [0]);
        assert_eq!(wrong(Question::FirstOrLast, Class::B), [MAC_BYTES - 1]);
        assert_eq!(wrong(Question::LastOrAll, Class::A), [MAC_BYTES - 1]);
        assert!(wrong(Question::LastOrAll, Class::B).len() > 20);
    }
}
