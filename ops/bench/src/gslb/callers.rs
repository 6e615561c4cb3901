//! The callers: a process that asks over HTTP as often as it is told, and looks at each answer's
//! status.
//!
//! It spends as little as it can on a question, so that the server is never kept waiting: questions
//! are rendered once, and of an answer over HTTP/1.1 only the status and the length are read.

mod http1;
mod http2;

use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::timeout;

/// Longest time for all that one order asks.
const ORDER_MAX: Duration = Duration::from_secs(60);

/// The word before an order is carried out, and after it.
pub(super) const DONE: &str = "done";

/// What the callers are told at first.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Orders {
    pub(super) speech: Speech,
    /// Whom they may be told to ask.
    pub(super) servers: Vec<SocketAddr>,
    pub(super) path: String,
    /// As a business server's.
    pub(super) api_key: Option<String>,
    /// The bodies of questions, one for each caller; each caller has one question under way.
    pub(super) questions: Vec<String>,
}

/// How they ask.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) enum Speech {
    /// Each caller has a connection of its own, which it keeps.
    Http1,
    /// Callers share so many connections.
    Http2 { connections: usize },
}

/// One order: so many questions of all callers together, to one server.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Order {
    /// Its place in [`Orders::servers`].
    pub(super) server: usize,
    pub(super) questions: u32,
}

/// Carries out orders until the standard input ends. The last word is the last answer.
pub(crate) async fn serve() -> anyhow::Result<()> {
    let mut words = BufReader::new(tokio::io::stdin()).lines();
    let orders = words.next_line().await?.context("there are no orders")?;
    let orders: Orders = serde_json::from_str(&orders).context("these are no orders")?;
    ensure!(!orders.questions.is_empty(), "nobody is there to ask");
    let mut last = String::new();
    match orders.speech {
        Speech::Http1 => {
            let mut callers = http1::Callers::connect(&orders).await?;
            say(DONE)?;
            while let Some(order) = words.next_line().await? {
                last = in_time(callers.ask(serde_json::from_str(&order)?)).await?;
                say(DONE)?;
            }
        }
        Speech::Http2 { connections } => {
            let callers = http2::Callers::connect(&orders, connections).await?;
            say(DONE)?;
            while let Some(order) = words.next_line().await? {
                last = in_time(callers.ask(serde_json::from_str(&order)?)).await?;
                say(DONE)?;
            }
        }
    }
    ensure!(!last.contains('\n'), "the last answer has more than one line");
    say(&last)
}

async fn in_time(asking: impl Future<Output = anyhow::Result<String>>) -> anyhow::Result<String> {
    timeout(ORDER_MAX, asking).await.context("the answers do not come")?
}

/// Of so many questions in all, those of one of so many callers.
fn part(questions: u32, caller: usize, callers: usize) -> u32 {
    let (caller, callers) = (caller as u64, callers as u64);
    let until = |it: u64| u64::from(questions) * it / callers;
    u32::try_from(until(caller + 1) - until(caller)).expect("a part of a u32 fits a u32")
}

fn say(line: &str) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}")?;
    Ok(output.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_all_callers_are_all_questions() {
        for (questions, callers) in [(1_000, 64), (7, 3), (2, 5), (0, 4)] {
            let parts = (0..callers).map(|it| part(questions, it, callers));
            assert_eq!(parts.sum::<u32>(), questions);
        }
    }
}
