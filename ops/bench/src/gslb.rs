//! gslb: decisions and plans of one core, and questions over HTTP.
//!
//! `gslb.decide` chooses three addresses for a viewer; `gslb.plan.…` is one plan of a fleet at rest.
//!
//! `gslb.answer` is a question's bytes in and an answer's bytes out, in process: a viewer of an open
//! room, three addresses, three tokens, JSON. `gslb.answer.one` is a question that was read in and
//! the bytes of an answer with one address and token out: the client speaks what one node of all
//! speaks, so it gets what every client of an installation with one address gets.
//! `gslb.answer.one.bytes` is the same from the question's bytes, and `gslb.answer.ticket` is
//! `gslb.answer` that verifies a ticket with HMAC-SHA-256 besides. All of these have neither limits
//! of rate nor a table of addresses nor bases of segments; `gslb.answer.full` is `gslb.answer` with
//! all three: an address's rate and everybody's, a table of 400,000 ranges with viewers all over
//! it, and three bases.
//!
//! `gslb.http1` is one question each round trip over kept connections, with a ticket signed by
//! HMAC-SHA-256: the whole way from bytes to bytes, with three tokens. `gslb.http1.eddsa` is the
//! same with Ed25519 tickets, `gslb.http2` with many questions under way on two connections, and
//! `gslb.batch100` counts the viewers of a business server's batches, of an open room. The
//! process holds the gslb, an auth service at rest and a hundred nodes' reports; its CPU time counts,
//! less what it uses in as long a while when nobody asks, which is the line `gslb.http.rest`. Its
//! tasks have one thread. The callers are a process of their own. Peers answer the same questions
//! with two bytes: nginx with one process and `return 200`, and Node's HTTP server. Nothing here has
//! limits of rate, a table of addresses or bases either.
//!
//! A name is a line's, or the beginning of several lines' names.

mod answer;
mod callers;
mod collect;
mod decide;
mod fleet;
mod http;
mod site;

use crate::line::Line;

pub(crate) use callers::serve as call;
pub(crate) use collect::serve as report;

/// The name under which this executable is started as the callers.
pub(crate) const CALLERS: &str = "gslb-callers";
/// The name under which it is started as the nodes.
pub(crate) const NODES: &str = "gslb-nodes";

/// The lines of each part.
const DECIDE: &[&str] = &["gslb.decide", "gslb.plan.2000", "gslb.plan.20000"];
const ANSWER: &[&str] = &[
    "gslb.answer",
    "gslb.answer.one",
    "gslb.answer.one.bytes",
    "gslb.answer.ticket",
    "gslb.answer.full",
];
const COLLECT: &[&str] = &["gslb.collector.1000", "gslb.collector.1000.read"];
const HTTP: &[&str] =
    &["gslb.http.rest", "gslb.http1", "gslb.http1.eddsa", "gslb.http2", "gslb.batch100"];

/// Whether it is a line of these, or the beginning of some.
pub(crate) fn has(name: &str) -> bool {
    [DECIDE, ANSWER, COLLECT, HTTP].iter().any(|it| begins(it, name))
}

/// The parts with lines that begin with `name`.
pub(crate) async fn run(name: &str) -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    if begins(DECIDE, name) {
        lines.extend(decide::run()?);
    }
    if begins(ANSWER, name) {
        lines.extend(Box::pin(answer::run(name)).await?);
    }
    if begins(COLLECT, name) {
        lines.extend(Box::pin(collect::run()).await?);
    }
    if begins(HTTP, name) {
        lines.extend(Box::pin(http::run(name)).await?);
    }
    Ok(lines)
}

fn begins(lines: &[&str], name: &str) -> bool {
    lines.iter().any(|it| it.starts_with(name))
}

/// Whether this line of a part is one of those: the one that is called `name`, or all that begin
/// with it.
fn is_asked(name: &str, line: &str) -> bool {
    let is_whole = [DECIDE, ANSWER, COLLECT, HTTP].concat().contains(&name);
    if is_whole { line == name } else { line.starts_with(name) }
}
