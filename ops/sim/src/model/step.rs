//! What may happen to a node, drawn from a seed.
//!
//! A step means something in any state, so that steps can be taken out of a run that fails.

use rand::RngExt;
use rand::rngs::SmallRng;

/// Rooms; the first three are busy, and one session cannot be in all of them.
pub(super) const ROOMS: u8 = 9;
/// Clients, two of each viewer.
pub(super) const CLIENTS: u8 = 10;
/// Clients of one viewer.
pub(super) const CLIENTS_PER_VIEWER: u8 = 2;

const BUSY_ROOMS: u8 = 3;

/// How a client wants a room.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wish {
    Auto,
    Promoted,
    Segments,
}

/// Which place a client comes back with.
#[derive(Clone, Copy, Debug)]
pub(super) enum From {
    /// It wants what comes from now on.
    Nowhere,
    /// The last item that was pushed to it.
    Push,
    /// The room's last item: it had the segments.
    Segments,
}

/// One step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// A client logs in into some rooms; an older session of it goes on until it hangs up.
    Login {
        client: u8,
        rooms: u16,
        wish: Wish,
        from: From,
    },
    /// Into another room, or once more into the same.
    Join {
        client: u8,
        room: u8,
        wish: Wish,
        from: From,
    },
    Leave {
        client: u8,
        room: u8,
    },
    Switch {
        client: u8,
        leave: u8,
        join: u8,
    },
    /// The connection of the oldest or the newest session ends.
    HangUp {
        client: u8,
        is_oldest: bool,
    },
    Kick {
        viewer: u8,
    },
    Comment {
        client: u8,
        room: u8,
    },
    Refresh {
        client: u8,
    },
    /// The chatserver answers so many times.
    Answer {
        client: u8,
        acks: u8,
    },
    /// The client takes all that waits for it.
    Read {
        client: u8,
    },
    Flush {
        room: u8,
        comments: u8,
        gifts: u8,
    },
    /// The last flush once more, as after a takeover of the room.
    Repeat {
        room: u8,
    },
    /// Flushes that never reach this node, and the bus says so.
    Lose {
        room: u8,
        comments: u8,
    },
    Seal {
        room: u8,
    },
    /// The room's heat turns: from a slot that is ahead, or one that is being filled or full.
    Turn {
        room: u8,
        ahead: u8,
        is_late: bool,
    },
    NewGen {
        room: u8,
    },
    Close {
        room: u8,
    },
    Open {
        room: u8,
    },
    Keep {
        room: u8,
        permille: u16,
    },
    Gauges,
    Pass {
        ms: u32,
    },
}

impl Step {
    pub(super) fn draw(rng: &mut SmallRng) -> Self {
        let client = rng.random_range(0..CLIENTS);
        let room = room(rng);
        match rng.random_range(0..1000) {
            0..60 => {
                let rooms = rng.random_range(0..1 << ROOMS) & rng.random_range(0..1 << ROOMS);
                Self::Login { client, rooms, wish: wish(rng), from: from(rng) }
            }
            60..110 => Self::Join { client, room, wish: wish(rng), from: from(rng) },
            110..140 => Self::Leave { client, room },
            140..170 => Self::Switch { client, leave: room, join: self::room(rng) },
            170..210 => Self::HangUp { client, is_oldest: rng.random_ratio(3, 4) },
            210..215 => Self::Kick { viewer: client / CLIENTS_PER_VIEWER },
            215..245 => Self::Comment { client, room },
            245..250 => Self::Refresh { client },
            250..270 => Self::Answer { client, acks: rng.random_range(1..120) },
            270..460 => Self::Read { client },
            460..760 => {
                let gifts = if rng.random_ratio(1, 2) { rng.random_range(1..4) } else { 0 };
                Self::Flush { room, comments: rng.random_range(0..6), gifts }
            }
            760..770 => Self::Repeat { room },
            770..775 => Self::Lose { room, comments: rng.random_range(1..4) },
            775..865 => Self::Seal { room },
            865..890 => {
                let (ahead, is_late) = (rng.random_range(0..4), rng.random_ratio(1, 2));
                Self::Turn { room, ahead, is_late }
            }
            890..893 => Self::NewGen { room },
            893..895 => Self::Close { room },
            895..905 => Self::Open { room },
            905..910 => Self::Keep { room, permille: rng.random_range(0..=1000) },
            910..920 => Self::Gauges,
            920..998 => Self::Pass { ms: rng.random_range(1..2_000) },
            _ => Self::Pass { ms: 65_000 },
        }
    }
}

fn room(rng: &mut SmallRng) -> u8 {
    let rooms = if rng.random_ratio(3, 4) { BUSY_ROOMS } else { ROOMS };
    rng.random_range(0..rooms)
}

fn wish(rng: &mut SmallRng) -> Wish {
    match rng.random_range(0..6) {
        0 => Wish::Segments,
        1 | 2 => Wish::Promoted,
        _ => Wish::Auto,
    }
}

fn from(rng: &mut SmallRng) -> From {
    match rng.random_range(0..4) {
        0 => From::Nowhere,
        1 => From::Segments,
        _ => From::Push,
    }
}
