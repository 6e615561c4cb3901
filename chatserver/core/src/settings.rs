//! Which settings a room may have.

use std::ops::RangeInclusive;

use proto::control::RoomSettings;

/// A setting outside its range.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{field} must be {} to {}, not {value}", range.start(), range.end())]
pub struct OutOfRange {
    /// Which.
    pub field: &'static str,
    /// What it may be.
    pub range: RangeInclusive<u32>,
    /// What it was to be.
    pub value: u32,
}

/// Checks every setting.
pub fn check(settings: &RoomSettings) -> Result<(), OutOfRange> {
    let fields = [
        // A grapheme has at least one byte, so more than the bytes of a text says nothing.
        ("graphemes_max", settings.graphemes_max, 1..=2048),
        ("slow_mode_ms", settings.slow_mode_ms, 0..=3_600_000),
        ("viewer_burst", settings.viewer_burst, 1..=1000),
        ("viewer_refill_ms", settings.viewer_refill_ms, 1..=600_000),
        ("hot_sessions", settings.hot_sessions, 1..=u32::MAX),
        ("cold_sessions", settings.cold_sessions, 0..=settings.hot_sessions),
        ("items_per_s", settings.items_per_s, 1..=2000),
        ("bytes_per_s", settings.bytes_per_s, 2048..=1024 * 1024),
        ("interval_ms", settings.interval_ms, 200..=10_000),
    ];
    for (field, value, range) in fields {
        if !range.contains(&value) {
            return Err(OutOfRange { field, range, value });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_allowed_and_each_bound_bites() {
        let check_field = |change: fn(&mut RoomSettings), expected: Option<&str>| {
            let mut settings = RoomSettings::default();
            change(&mut settings);
            assert_eq!(check(&settings).err().map(|it| it.field), expected);
        };

        check_field(|_| {}, None);
        check_field(|it| it.graphemes_max = 0, Some("graphemes_max"));
        check_field(|it| it.viewer_refill_ms = 0, Some("viewer_refill_ms"));
        check_field(|it| it.cold_sessions = it.hot_sessions, None);
        check_field(|it| it.cold_sessions = it.hot_sessions + 1, Some("cold_sessions"));
        check_field(|it| it.interval_ms = 10_000, None);
        check_field(|it| it.interval_ms = 10_001, Some("interval_ms"));
    }
}
