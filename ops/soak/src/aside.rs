//! Another process of this executable, for those who are not to be measured with what they talk to.
//!
//! Its orders come on its standard input in one line, and what it is told later in further ones;
//! what it says goes to its standard output, one JSON object a line.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines, Stdin};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// The process, as the one that started it has it. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Aside {
    process: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

/// This executable, to be what `name` says.
///
/// # Errors
/// When nobody knows where it is.
pub(crate) fn itself(name: &str) -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(name);
    Ok(command)
}

impl Aside {
    /// # Errors
    /// When it does not start.
    pub(crate) async fn start(
        mut command: Command,
        orders: &impl Serialize,
    ) -> anyhow::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().context("the process aside did not start")?;
        let input = process.stdin.take().context("the process aside has no input")?;
        let output = process.stdout.take().context("the process aside has no output")?;
        let mut aside = Self { process, input, lines: BufReader::new(output).lines() };
        aside.tell(&serde_json::to_string(orders)?).await?;
        Ok(aside)
    }

    /// Says a line to it.
    ///
    /// # Errors
    /// When it has ended.
    pub(crate) async fn tell(&mut self, line: &str) -> anyhow::Result<()> {
        let told = self.input.write_all(format!("{line}\n").as_bytes()).await;
        told.context("the process aside does not listen")
    }

    /// Waits for what it says next.
    ///
    /// # Errors
    /// When it says nothing within `at_most`, or has ended.
    pub(crate) async fn hear<T: DeserializeOwned>(
        &mut self,
        at_most: Duration,
    ) -> anyhow::Result<T> {
        let line = timeout(at_most, self.lines.next_line()).await;
        let line = line.context("the process aside is silent")??;
        Ok(serde_json::from_str(&line.context("the process aside ended")?)?)
    }

    /// Ends it at once.
    ///
    /// # Errors
    /// When it cannot be ended.
    pub(crate) async fn kill(mut self) -> anyhow::Result<()> {
        self.process.kill().await.context("the process aside did not end")
    }
}

/// In the process itself: its orders, and where it hears what it is told later.
///
/// # Errors
/// When there are none, or they make no sense.
pub(crate) async fn orders<T: DeserializeOwned>() -> anyhow::Result<(T, Lines<BufReader<Stdin>>)> {
    let mut input = BufReader::new(tokio::io::stdin()).lines();
    let orders = input.next_line().await?.context("there are no orders")?;
    Ok((serde_json::from_str(&orders)?, input))
}

/// In the process itself: says something.
///
/// # Errors
/// When nobody listens.
pub(crate) fn say(said: &impl Serialize) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{}", serde_json::to_string(said)?)?;
    Ok(output.flush()?)
}
