//! One node's numbers, as plans read them: worked out once, when its report is heard.

use proto::id::NodeId;
use proto::load::{Load, LoadReport};

/// Logins a second from which on they are all alike: what the arithmetic of shares holds.
pub(crate) const RATE_MAX: u32 = 1 << 26;
/// One, where parts of one are counted.
pub(crate) const ONE: u64 = 1024;
/// Bits behind the point of [`Row::per_place`].
pub(crate) const PLACE_BITS: u32 = 16;

/// One node's numbers: half a cache line, since a plan reads those of all nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) node: NodeId,
    /// Differs from that of the report before.
    pub(crate) report_no: u32,
    /// Logins a second that it can do.
    pub(crate) rate: u32,
    /// Places for viewers.
    pub(crate) places: u32,
    /// `rate` for each place that it has in all, with [`PLACE_BITS`] behind the point.
    pub(crate) per_place: u64,
    /// 0 idle, [`ONE`] fully busy.
    pub(crate) busy: u16,
    pub(crate) state: State,
}

/// What a node is there for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum State {
    /// It is not under lease.
    Dead,
    /// It takes no viewers.
    Resting,
    /// It takes viewers.
    Taking,
    /// It takes viewers, and has not grown to its full share yet.
    Growing,
}

impl Row {
    pub(crate) fn new(report: &LoadReport, report_no: u32, state: State) -> Self {
        let load = report.load;
        // A node that does not say is taken to fill up within a second at the fastest.
        let rate = if load.handshakes_per_s_max == 0 {
            load.sessions_max
        } else {
            load.handshakes_per_s_max
        };
        let rate = rate.clamp(1, RATE_MAX);
        let used = load.sessions.saturating_add(load.handshakes).saturating_add(load.accept_queue);
        Self {
            node: report.node,
            report_no,
            rate,
            places: load.sessions_max.saturating_sub(used),
            per_place: (u64::from(rate) << PLACE_BITS) / u64::from(load.sessions_max.max(1)),
            busy: busy(&load, rate),
            state,
        }
    }

    pub(crate) fn is_live(&self) -> bool {
        self.state != State::Dead
    }
}

impl Default for Row {
    fn default() -> Self {
        Self {
            node: NodeId(0),
            report_no: 0,
            rate: 1,
            places: 0,
            per_place: 0,
            busy: 0,
            state: State::Dead,
        }
    }
}

/// The busier of two: the CPU, and the logins that wait, where a second's worth is fully busy.
fn busy(load: &Load, rate: u32) -> u16 {
    let waiting = u64::from(load.handshakes) + u64::from(load.accept_queue);
    let waiting = waiting * ONE / u64::from(rate);
    let cpu = u64::from(load.cpu_permille) * ONE / 1000;
    u16::try_from(waiting.max(cpu).min(ONE)).expect("ONE fits")
}
