//! Where a room is pushed to, as an operator writes it and as it is used.

use auth_core::secret::Secret;
use proto::id::RoomId;
use serde::{Deserialize, Serialize};

/// RTMP's own port.
const PORT: u16 = 1935;
/// Pushes of one process, a task and a connection each.
const PUSHES_MAX: usize = 1_000;

/// One of `[[broadcaster.pushes]]`: a room that is pushed to a live CDN, as a video of 16 × 16 grey
/// pixels at five frames a second with its items beside them. About 2 kbit/s, and the items.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct Push {
    /// The room. It may have several pushes, one for each CDN.
    pub room: String,
    /// Where to, `rtmp://host[:port]/app`; what CDNs call the server or the push address.
    pub url: String,
    /// The stream's name and what proves that it may be pushed; what CDNs call the stream key. It is
    /// printed nowhere.
    pub key: Secret,
}

/// Where a room is pushed to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Target {
    pub(crate) room: RoomId,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) app: String,
    pub(crate) url: String,
    pub(crate) key: Secret,
}

/// Why a push cannot work. The key is never in it.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum Wrong {
    #[error("a push names the room {0:?}, which is none")]
    Room(String),
    #[error("a push of the room {0} has a url that is no rtmp://host[:port]/app")]
    Url(RoomId),
    #[error("a push of the room {0} has no key, or one with a space")]
    Key(RoomId),
    #[error("two pushes, to {0}, have the same key")]
    Twice(String),
    #[error("more than {PUSHES_MAX} pushes")]
    Many,
}

/// All pushes of a configuration.
pub(crate) fn targets(pushes: &[Push]) -> Result<Vec<Target>, Wrong> {
    if pushes.len() > PUSHES_MAX {
        return Err(Wrong::Many);
    }
    let mut targets: Vec<Target> = Vec::with_capacity(pushes.len());
    for push in pushes {
        let target = Target::parse(push)?;
        let is_same = |it: &Target| (&it.url, &it.key) == (&target.url, &target.key);
        if targets.iter().any(is_same) {
            return Err(Wrong::Twice(target.url));
        }
        targets.push(target);
    }
    Ok(targets)
}

impl Target {
    fn parse(push: &Push) -> Result<Self, Wrong> {
        let room = RoomId::parse(&push.room).map_err(|_| Wrong::Room(push.room.clone()))?;
        let Some((host, port, app)) = parts(&push.url) else {
            return Err(Wrong::Url(room));
        };
        let key = push.key.expose();
        if key.is_empty() || key.contains(char::is_whitespace) {
            return Err(Wrong::Key(room));
        }
        let (url, key) = (push.url.clone(), push.key.clone());
        Ok(Self { room, host: host.to_owned(), port, app: app.to_owned(), url, key })
    }
}

/// Host, port and app.
fn parts(url: &str) -> Option<(&str, u16, &str)> {
    let (authority, app) = url.strip_prefix("rtmp://")?.split_once('/')?;
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            (host, if port.is_empty() { None } else { Some(port.strip_prefix(':')?) })
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let port = port.map_or(Some(PORT), |it| it.parse().ok().filter(|&it| it > 0))?;
    let is_plain = |it: &str| !it.is_empty() && !it.contains(|it: char| it.is_whitespace());
    let is_well = is_plain(host) && !host.contains('@') && is_plain(app) && !app.ends_with('/');
    is_well.then_some((host, port, app))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(room: &str, url: &str, key: &str) -> Push {
        Push { room: room.into(), url: url.into(), key: Secret::new(key.into()) }
    }

    #[test]
    fn addresses_are_read_as_cdns_write_them() {
        let check = |url, expected| assert_eq!(parts(url), expected, "{url}");

        check("rtmp://push.example/live", Some(("push.example", 1935, "live")));
        check("rtmp://10.0.0.5:2935/live/eu?a=1", Some(("10.0.0.5", 2935, "live/eu?a=1")));
        check("rtmp://[::1]/live", Some(("::1", 1935, "live")));
        check("rtmp://[::1]:2935/live", Some(("::1", 2935, "live")));
        check("rtmps://push.example/live", None);
        check("rtmp://push.example", None);
        check("rtmp://push.example/", None);
        check("rtmp://push.example/live/", None);
        check("rtmp://:1935/live", None);
        check("rtmp://push.example:0/live", None);
        check("rtmp://push.example:x/live", None);
        check("rtmp://me@push.example/live", None);
        check("rtmp://[::1]x/live", None);
    }

    #[test]
    fn what_cannot_work_is_refused_without_its_key() {
        let url = "rtmp://push.example/live";
        let check = |pushes: &[Push], expected: &str| {
            let text = targets(pushes).unwrap_err().to_string();
            assert!(text.contains(expected) && !text.contains("secret"), "{text}");
        };

        check(&[push("no room", url, "secret")], "which is none");
        check(&[push("r", "push.example", "secret")], "no rtmp://");
        check(&[push("r", url, "")], "no key");
        check(&[push("r", url, "a secret")], "no key");
        check(&[push("r", url, "secret"), push("s", url, "secret")], "the same key");
        check(&vec![Push::default(); PUSHES_MAX + 1], "more than 1000");
    }

    #[test]
    fn a_key_is_not_printed() {
        let push = push("r", "rtmp://push.example/live", "secret");

        let printed = [format!("{push:?}"), serde_json::to_string(&push).unwrap()];

        assert!(printed.iter().all(|it| !it.contains("secret")), "{printed:?}");
    }
}
