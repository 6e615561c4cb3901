//! Times in plain words.

use std::time::Duration;

use proto::time::Wall;

/// A length of time with two units: `2 h 5 min`, `40 s`.
pub(crate) fn length(duration: Duration) -> String {
    let s = duration.as_secs();
    let (days, hours, minutes, seconds) = (s / 86_400, s / 3600 % 24, s / 60 % 60, s % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {seconds} s"),
        (0, _, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

/// A moment as seen from now: `in 40 s`, `2 h 5 min ago`, `now`.
pub(crate) fn moment(at: Wall, now: Wall) -> String {
    let (ahead, ago) = (at.since(now), now.since(at));
    match (ahead.as_secs(), ago.as_secs()) {
        (0, 0) => "now".to_owned(),
        (0, _) => format!("{} ago", length(ago)),
        _ => format!("in {}", length(ahead)),
    }
}

/// What an epoch is at this moment.
pub(crate) fn epoch(epoch: u32, interval_s: u32, now: Wall) -> String {
    let start = |epoch: u64| Wall(epoch * u64::from(interval_s) * 1000);
    let (begins, ends) = (start(u64::from(epoch)), start(u64::from(epoch) + 1));
    if now < begins {
        format!("begins {}", moment(begins, now))
    } else if now < ends {
        format!("runs, ends {}", moment(ends, now))
    } else {
        format!("ended {}", moment(ends, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_two_units() {
        let check = |s, words: &str| assert_eq!(length(Duration::from_secs(s)), words);

        check(0, "0 s");
        check(59, "59 s");
        check(60, "1 min 0 s");
        check(7_500, "2 h 5 min");
        check(90_000, "1 d 1 h");
    }

    #[test]
    fn an_epoch_is_ahead_runs_or_is_over() {
        let now = Wall(6_030_000);

        assert_eq!(epoch(11, 600, now), "begins in 9 min 30 s");
        assert_eq!(epoch(10, 600, now), "runs, ends in 9 min 30 s");
        assert_eq!(epoch(9, 600, now), "ended 30 s ago");
        assert_eq!(moment(now, now), "now");
    }
}
