//! A session, given spoiled conversations before and after its login.
//!
//! What shows something new of the session's behaviour is kept and spoiled further. It begins with
//! the committed corpus, whose inputs are all replayed first. (Guided by the compiler's coverage it
//! is not: that needs more than a stable compiler.)

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use drill::Line;
use kit::clock::Clock;
use kit::seed::derive;
use proto::limits::UPLINK_FRAME_BYTES_MAX;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use sim::frames::{Features, Phase, conversation, feed, opening};

use super::spoil::spoiled;

/// The corpus, where this was built.
const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus");
/// Inputs between two looks at the clock.
const TURN: u64 = 256;
/// Inputs that are kept in one run.
const KEPT_MAX: usize = 2_000;

/// Feeds both phases for half of `length` each; what is new goes into the folder `kept`, if one is
/// given.
pub(super) async fn run(
    vectors: Vec<Vec<u8>>,
    length: Duration,
    kept: Option<&Path>,
    line: &mut Line,
) -> anyhow::Result<()> {
    for phase in Phase::ALL {
        let corpus = corpus(phase)?;
        let (replayed, vectors) = (corpus.len(), vectors.clone());
        let seed = derive(line.seed(), phase.name());
        let fuzz = move || Fuzz::new(phase, corpus, vectors, seed).run(length / 2);
        let fuzz = tokio::task::spawn_blocking(fuzz).await?;
        if let Some(folder) = kept {
            fuzz.keep(&folder.join(phase.name()))?;
        }
        let names = match phase {
            Phase::Login => ["before_login_inputs", "before_login_features", "before_login_new"],
            Phase::Open => ["after_login_inputs", "after_login_features", "after_login_new"],
        };
        line.figure(names[0], fuzz.inputs);
        line.figure(names[1], fuzz.features.len());
        line.figure(names[2], fuzz.corpus.len() - replayed);
        if let Some((why, input)) = fuzz.broken {
            line.fail(format!("{}: {why}: {input:02x?}", phase.name()));
        }
    }
    Ok(())
}

/// The committed inputs of a phase, in the order of their names.
fn corpus(phase: Phase) -> anyhow::Result<Vec<Vec<u8>>> {
    let folder = Path::new(CORPUS).join(phase.name());
    let files = fs::read_dir(&folder)
        .context("the corpus is not where this was built: run it in its checkout")?;
    let mut paths: Vec<PathBuf> = files.map(|it| Ok(it?.path())).collect::<anyhow::Result<_>>()?;
    paths.sort();
    ensure!(!paths.is_empty(), "{} is empty", folder.display());
    Ok(paths.iter().map(fs::read).collect::<Result<_, _>>()?)
}

struct Fuzz {
    phase: Phase,
    /// What was found to be new, the committed inputs first.
    corpus: Vec<Vec<u8>>,
    committed: usize,
    vectors: Vec<Vec<u8>>,
    features: Features,
    inputs: u64,
    broken: Option<(String, Vec<u8>)>,
    rng: SmallRng,
}

impl Fuzz {
    fn new(phase: Phase, corpus: Vec<Vec<u8>>, vectors: Vec<Vec<u8>>, seed: u64) -> Self {
        Self {
            phase,
            committed: corpus.len(),
            corpus,
            vectors,
            features: Features::new(),
            inputs: 0,
            broken: None,
            rng: SmallRng::seed_from_u64(seed),
        }
    }

    /// Replays the corpus, then feeds what is made of it.
    fn run(mut self, length: Duration) -> Self {
        for input in self.corpus.clone() {
            self.feed(&input);
        }
        let clock = Clock::system();
        let deadline = clock.mono() + length;
        while clock.mono() < deadline && self.broken.is_none() {
            for _ in 0..TURN {
                let input = self.draw();
                if self.feed(&input) && self.corpus.len() < self.committed + KEPT_MAX {
                    self.corpus.push(input);
                }
            }
        }
        self
    }

    /// Says whether the input showed something new.
    fn feed(&mut self, input: &[u8]) -> bool {
        self.inputs += 1;
        match feed(self.phase, input) {
            Ok(features) => {
                let before = self.features.len();
                self.features.extend(features);
                self.features.len() > before
            }
            Err(why) => {
                self.broken.get_or_insert_with(|| (why, input.to_vec()));
                false
            }
        }
    }

    /// A spoiled conversation, or one whose frames are good or spoiled each by itself.
    fn draw(&mut self) -> Vec<u8> {
        if self.rng.random() {
            return spoiled(&self.corpus, &mut self.rng);
        }
        let mut frames: Vec<Vec<u8>> = Vec::new();
        for frame in opening() {
            if self.rng.random() {
                frames.push(frame.to_vec());
            }
        }
        for _ in 0..self.rng.random_range(1..12) {
            let vector = self.rng.random_range(0..self.vectors.len());
            let is_good = self.rng.random_ratio(1, 2);
            let mut frame = if is_good {
                self.vectors[vector].clone()
            } else {
                spoiled(&self.vectors, &mut self.rng)
            };
            frame.truncate(UPLINK_FRAME_BYTES_MAX - 1);
            frames.push(frame);
        }
        conversation(&frames.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    /// Writes what is new into a folder.
    fn keep(&self, folder: &Path) -> anyhow::Result<()> {
        fs::create_dir_all(folder)?;
        for input in &self.corpus[self.committed..] {
            fs::write(folder.join(format!("{:08x}.bin", crc32fast::hash(input))), input)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corpus_breaks_nothing_and_shows_all_phases() {
        for phase in Phase::ALL {
            let fuzz = Fuzz::new(phase, corpus(phase).unwrap(), vec![vec![0]], 1);

            let fuzz = fuzz.run(Duration::ZERO);

            assert_eq!(fuzz.broken, None);
            assert!(fuzz.features.len() > 20, "{}: {}", phase.name(), fuzz.features.len());
        }
    }
}
