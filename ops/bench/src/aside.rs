//! This executable once more, as a process whose CPU time is not counted with what is measured.
//!
//! It is told what to do by one line of JSON on its standard input, hears further words there, and
//! answers in lines on its standard output.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// Longest wait for an answer; the logins of thousands take the longest.
const ANSWER_MAX: Duration = Duration::from_secs(120);

/// The process; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Aside {
    process: Child,
    input: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Aside {
    /// Starts the benchmark called `name`, and gives it its orders.
    pub(crate) async fn start(name: &str, orders: &impl Serialize) -> anyhow::Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(["bench", name])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start the process {name}"))?;
        let input = process.stdin.take().context("the process has no input")?;
        let output = process.stdout.take().context("the process has no output")?;
        let mut aside = Self { process, input, answers: BufReader::new(output).lines() };
        aside.tell(&serde_json::to_string(orders)?).await?;
        Ok(aside)
    }

    /// Says one line.
    pub(crate) async fn tell(&mut self, line: &str) -> anyhow::Result<()> {
        self.input.write_all(format!("{line}\n").as_bytes()).await?;
        Ok(())
    }

    /// Says something, and waits for what comes of it.
    pub(crate) async fn inquire<T: DeserializeOwned>(
        &mut self,
        order: &impl Serialize,
    ) -> anyhow::Result<T> {
        self.tell(&serde_json::to_string(order)?).await?;
        Ok(serde_json::from_str(&next(&mut self.answers).await?)?)
    }

    /// Waits for one word.
    pub(crate) async fn expect(&mut self, word: &str) -> anyhow::Result<()> {
        let answer = next(&mut self.answers).await?;
        ensure!(answer == word, "the process said {answer:?} instead of {word:?}");
        Ok(())
    }

    /// Lets it go, and waits for its last word.
    pub(crate) async fn leave(mut self) -> anyhow::Result<String> {
        drop(self.input);
        let answer = next(&mut self.answers).await?;
        let ended = timeout(ANSWER_MAX, self.process.wait()).await.context("it does not end")??;
        ensure!(ended.success(), "the process failed");
        Ok(answer)
    }
}

async fn next(answers: &mut Lines<BufReader<ChildStdout>>) -> anyhow::Result<String> {
    let answer = timeout(ANSWER_MAX, answers.next_line()).await;
    answer.context("the process does not answer")??.context("the process ended")
}
