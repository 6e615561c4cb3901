//! The receivers' process, as seen from the measured side.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, ensure};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::RECEIVER;
use super::receiver::{HAVE_IT, IN, Orders, Report};

/// Longest wait for an answer; the logins of thousands take the longest.
const ANSWER_MAX: Duration = Duration::from_secs(120);

/// The receivers' process; it ends when this is dropped.
pub(super) struct Audience {
    process: Child,
    input: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Audience {
    /// Starts this executable once more, and gives it its orders.
    pub(super) async fn start(orders: &Orders) -> anyhow::Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(["bench", RECEIVER])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start the receivers")?;
        let mut input = process.stdin.take().context("the receivers have no input")?;
        let output = process.stdout.take().context("the receivers have no output")?;
        input.write_all(serde_json::to_string(orders)?.as_bytes()).await?;
        input.write_all(b"\n").await?;
        Ok(Self { process, input, answers: BufReader::new(output).lines() })
    }

    /// Waits until all are in.
    pub(super) async fn are_in(&mut self) -> anyhow::Result<()> {
        self.expect(IN).await
    }

    /// Waits until all have the next frame.
    pub(super) async fn have_it(&mut self) -> anyhow::Result<()> {
        self.expect(HAVE_IT).await
    }

    /// Lets them go, and asks what they got.
    pub(super) async fn leave(mut self) -> anyhow::Result<Report> {
        drop(self.input);
        let answer = next(&mut self.answers).await?;
        let ended = timeout(ANSWER_MAX, self.process.wait()).await.context("they do not end")??;
        ensure!(ended.success(), "the receivers failed");
        Ok(serde_json::from_str(&answer)?)
    }

    async fn expect(&mut self, word: &str) -> anyhow::Result<()> {
        let answer = next(&mut self.answers).await?;
        ensure!(answer == word, "the receivers said {answer:?} instead of {word:?}");
        Ok(())
    }
}

async fn next(answers: &mut Lines<BufReader<ChildStdout>>) -> anyhow::Result<String> {
    let answer = timeout(ANSWER_MAX, answers.next_line()).await;
    answer.context("the receivers do not answer")??.context("the receivers ended")
}
