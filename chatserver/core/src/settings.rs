//! Which settings a room may have.

use std::ops::RangeInclusive;

use proto::control::{Action, LaneShares, RoomSettings};
use proto::limits::HOLD_MS_MAX;

/// Hosts that may be linked to.
pub const LINK_HOSTS_MAX: usize = 16;
/// Bytes of a host's name (RFC 1035, 2.3.4).
const HOST_BYTES_MAX: usize = 253;

/// A setting that no room may have.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum BadSetting {
    /// A number outside its range.
    #[error("{field} must be {} to {}, not {value}", range.start(), range.end())]
    OutOfRange {
        /// Which.
        field: &'static str,
        /// What it may be.
        range: RangeInclusive<u32>,
        /// What it was to be.
        value: u32,
    },
    /// A link has no letters to put stars for.
    #[error("{field} may be allow, shadow, review or refuse, not mask")]
    Mask {
        /// Which.
        field: &'static str,
    },
    /// The lanes are promised more than there is.
    #[error("lanes are guaranteed {sum} percent, more than 100")]
    Lanes {
        /// Together.
        sum: u32,
    },
    /// A protected lane is promised something, and less than one item a second.
    #[error("{lane} is guaranteed less than one item a second: give it none, or more")]
    Thin {
        /// Which lane.
        lane: &'static str,
    },
    /// Too many hosts, or one that is none.
    #[error(
        "link_hosts takes {LINK_HOSTS_MAX} names of hosts in lower case, without scheme or path"
    )]
    Hosts,
    /// A sealed room would lie in the archive for everybody to read.
    #[error("a sealed room cannot be recorded: its archive may not be true")]
    Archive,
}

impl BadSetting {
    /// The setting's name.
    #[must_use]
    pub const fn field(&self) -> &'static str {
        match self {
            Self::OutOfRange { field, .. } | Self::Mask { field } => field,
            Self::Lanes { .. } | Self::Thin { .. } => "lanes",
            Self::Archive => "archive",
            Self::Hosts => "link_hosts",
        }
    }
}

/// Every setting that is a number, what it is here, and what it may be.
#[must_use]
pub fn ranges(settings: &RoomSettings) -> [(&'static str, u32, RangeInclusive<u32>); 15] {
    let interval_ms_max = settings.interval_ms_max.unwrap_or(settings.interval_ms);
    [
        // A grapheme has at least one byte, so more than the bytes of a text says nothing.
        ("graphemes_max", settings.graphemes_max, 1..=2048),
        ("slow_mode_ms", settings.slow_mode_ms, 0..=3_600_000),
        ("viewer_burst", settings.viewer_burst, 1..=1000),
        ("viewer_refill_ms", settings.viewer_refill_ms, 1..=600_000),
        ("repeat_ms", settings.repeat_ms, 0..=600_000),
        ("echo_max", settings.echo_max, 0..=1_000_000),
        ("hold_ms", settings.hold_ms, 0..=HOLD_MS_MAX),
        ("hot_sessions", settings.hot_sessions, 1..=u32::MAX),
        ("cold_sessions", settings.cold_sessions, 0..=settings.hot_sessions),
        ("items_per_s", settings.items_per_s, 1..=2000),
        ("bytes_per_s", settings.bytes_per_s, 2048..=1024 * 1024),
        ("lite_comments_per_s", settings.lite_comments_per_s.unwrap_or(0), 0..=2000),
        ("combo_ms", settings.combo_ms, 0..=10_000),
        ("interval_ms", settings.interval_ms, 200..=10_000),
        ("interval_ms_max", interval_ms_max, settings.interval_ms..=10_000),
    ]
}

/// Checks every setting.
pub fn check(settings: &RoomSettings) -> Result<(), BadSetting> {
    for (field, value, range) in ranges(settings) {
        if !range.contains(&value) {
            return Err(BadSetting::OutOfRange { field, range, value });
        }
    }
    for (field, action) in [("links", settings.links), ("contacts", settings.contacts)] {
        if action == Action::Mask {
            return Err(BadSetting::Mask { field });
        }
    }
    if let Some(LaneShares { notice, high_gift, low_gift, comment }) = settings.lanes {
        let sum = [notice, high_gift, low_gift, comment].map(u32::from).iter().sum();
        if sum > 100 {
            return Err(BadSetting::Lanes { sum });
        }
        // What is acknowledged is promised within seconds, at one a second and more.
        let protected = [("notice", notice), ("high_gift", high_gift), ("low_gift", low_gift)];
        let is_thin = |percent: u8| percent > 0 && settings.items_per_s * u32::from(percent) < 100;
        if let Some((lane, _)) = protected.into_iter().find(|it| is_thin(it.1)) {
            return Err(BadSetting::Thin { lane });
        }
    }
    let hosts = &settings.link_hosts;
    if hosts.len() > LINK_HOSTS_MAX || !hosts.iter().all(|it| is_host(it)) {
        return Err(BadSetting::Hosts);
    }
    if settings.sealed && settings.archive == Some(true) {
        return Err(BadSetting::Archive);
    }
    Ok(())
}

fn is_host(name: &str) -> bool {
    let is_label = |it: &str| {
        let bytes = it.as_bytes();
        let is_part = |it: &u8| it.is_ascii_lowercase() || it.is_ascii_digit() || *it == b'-';
        matches!(bytes.len(), 1..=63) && bytes.iter().all(is_part)
    };
    name.len() <= HOST_BYTES_MAX && name.contains('.') && name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn lanes(comment: u8) -> Option<LaneShares> {
        Some(LaneShares { notice: 10, high_gift: 20, low_gift: 30, comment })
    }

    #[test]
    fn the_defaults_are_allowed_and_each_bound_bites() {
        let check_field = |change: fn(&mut RoomSettings), expected: Option<&str>| {
            let mut settings = RoomSettings::default();
            change(&mut settings);
            assert_eq!(check(&settings).err().map(|it| it.field()), expected);
        };

        check_field(|_| {}, None);
        check_field(|it| it.graphemes_max = 0, Some("graphemes_max"));
        check_field(|it| it.viewer_refill_ms = 0, Some("viewer_refill_ms"));
        check_field(|it| it.cold_sessions = it.hot_sessions, None);
        check_field(|it| it.cold_sessions = it.hot_sessions + 1, Some("cold_sessions"));
        check_field(|it| it.interval_ms = 10_000, None);
        check_field(|it| it.interval_ms = 10_001, Some("interval_ms"));
        check_field(|it| it.interval_ms_max = Some(it.interval_ms), None);
        check_field(|it| it.interval_ms_max = Some(10_001), Some("interval_ms_max"));
        check_field(|it| it.interval_ms_max = Some(999), Some("interval_ms_max"));
        check_field(|it| it.lite_comments_per_s = Some(2001), Some("lite_comments_per_s"));
        check_field(|it| it.archive = Some(true), None);
        check_field(|it| (it.sealed, it.archive) = (true, Some(false)), None);
        check_field(|it| (it.sealed, it.archive) = (true, Some(true)), Some("archive"));
        check_field(|it| it.combo_ms = 10_001, Some("combo_ms"));
        check_field(|it| it.hold_ms = 30_000, None);
        check_field(|it| it.hold_ms = 30_001, Some("hold_ms"));
        check_field(|it| it.lanes = lanes(40), None);
        check_field(|it| it.lanes = lanes(41), Some("lanes"));
        check_field(|it| (it.lanes, it.items_per_s) = (lanes(40), 10), None);
        check_field(|it| (it.lanes, it.items_per_s) = (lanes(40), 9), Some("lanes"));
        check_field(|it| it.links = Action::Mask, Some("links"));
        check_field(|it| it.link_hosts = vec!["a.example".to_owned()], None);
        check_field(|it| it.link_hosts = vec!["http://a.example".to_owned()], Some("link_hosts"));
        check_field(|it| it.link_hosts = vec!["a.b".to_owned(); 17], Some("link_hosts"));
    }
}
