//! Links: what an idle session costs in memory, what a delivery and a login cost in CPU time.
//!
//! `link.idle_bytes.…` is what the resident memory of the process grows by for each session that
//! has logged in and waits in a room, every one of another viewer. All services are in the process,
//! so what auth, the gslb and the chatserver remember of a viewer is counted too.
//! `link.kernel_bytes.…` is the kernel's part; [`kit::process::kernel`] says what it contains.
//! `link.fanout.…` and `link.fanout_tls.…` are described at [`fanout`], `link.login.tls` is
//! `handshake.tls.p256` by another name.

mod idle;

use proto::address::Transport;

use crate::line::Line;
use crate::{fanout, handshake};

pub(crate) use idle::hold;

/// The name under which this executable is started as the node that holds idle sessions.
pub(crate) const NODE: &str = "link-node";
/// The transports of which memory is measured, as lines call them.
const IDLE: [(Transport, &str); 4] = [
    (Transport::Tcp, "plain"),
    (Transport::Ws, "ws"),
    (Transport::Tls, "tls"),
    (Transport::Quic, "quic"),
];
/// The transports of fan-out, and how lines begin.
const FANOUT: [(Transport, &str); 3] = [
    (Transport::Tcp, "link.fanout."),
    (Transport::Tls, "link.fanout_tls."),
    (Transport::Quic, "link.fanout_quic."),
];
const LOGIN: &str = "link.login.tls";
const HANDSHAKE: &str = "handshake.tls.p256";

/// Whether it is a line of these, or the beginning of some.
pub(crate) fn has(name: &str) -> bool {
    let fanout = FANOUT.iter().any(|(_, it)| begins(it, name));
    let idle = IDLE.iter().any(|(_, it)| is_idle(it, name));
    fanout || idle || LOGIN.starts_with(name)
}

/// The parts with lines that begin with `name`.
pub(crate) async fn run(name: &str) -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    for (transport, word) in IDLE.into_iter().filter(|(_, it)| is_idle(it, name)) {
        lines.extend(Box::pin(idle::measure(transport, word)).await?);
    }
    for (transport, start) in FANOUT.into_iter().filter(|(_, it)| begins(it, name)) {
        lines.extend(Box::pin(fanout::run(transport, start)).await?);
    }
    if LOGIN.starts_with(name) {
        let login = Box::pin(handshake::run(HANDSHAKE)).await?.into_iter().next();
        lines.extend(login.map(|it| Line { name: LOGIN.to_owned(), ..it }));
    }
    Ok(lines)
}

/// Whether one of a transport's two lines begins with `name`.
fn is_idle(word: &str, name: &str) -> bool {
    idle::names(word).iter().any(|it| it.starts_with(name))
}

/// Whether `name` is the beginning of some lines, or some lines begin with `start` and it too.
fn begins(start: &str, name: &str) -> bool {
    start.starts_with(name) || name.starts_with(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_line_is_enough() {
        for name in ["link", "link.idle_bytes", "link.kernel_bytes.ws", "link.fanout_tls.10"] {
            assert!(has(name), "{name}");
        }
        assert!(!has("links"));
        assert!(!has("link.idle_bytes.http"));
    }
}
