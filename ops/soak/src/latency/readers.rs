//! Readers of a room, of each kind that reads and is not pushed to.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use broadcaster_core::pack::expand;
use broadcaster_core::video::{flv, fragment};
use drill::Stage;
use kit::clock::Clock;
use kit::task::Tasks;
use proto::frame::Path;
use proto::head::Head;
use proto::id::ViewerId;
use sdk::{Client, Event};

use super::ledger::{Ledger, Way};

/// How often the playlist is asked for: players ask once a slot, and hold back some besides.
const PLAYLIST: Duration = Duration::from_millis(200);
/// Between two questions for a stream that is not there yet.
const PAUSE: Duration = Duration::from_millis(50);
/// One question is answered within this time.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// Bytes of a tag besides its data; its header, and the length behind it.
const TAG_HEAD: usize = 11;
const TAG_TAIL: usize = 4;

/// Starts them; they go when the tasks do.
pub(super) fn start(stage: &Stage, ledger: &Arc<Ledger>, tasks: &mut Tasks) -> anyhow::Result<()> {
    for (account, path, way) in
        [("by-connection", Path::Push, Way::Push), ("by-segments", Path::Segments, Way::Viewer)]
    {
        let mut options = stage.options(&ViewerId::parse(account)?)?;
        options.rooms = vec![(stage.room.clone(), path)];
        let ledger = Arc::clone(ledger);
        tasks.spawn("viewer", async move {
            let (_client, mut events) = Client::start(options);
            while let Some(event) = events.next().await {
                if let Event::Show { item, .. } = event
                    && let Some(text) = item.body.text()
                {
                    ledger.hear(way, text);
                }
            }
            bail!("a viewer was sent away")
        });
    }
    let pull = Pull {
        http: stage.http.clone(),
        base: format!("{}/dm/1/{}", stage.addrs.origin, stage.room),
        clock: stage.clock.clone(),
        ledger: Arc::clone(ledger),
    };
    tasks.spawn("flv", pull.clone().read_flv());
    tasks.spawn("segments", pull.clone().read_segments());
    tasks.spawn("hls", pull.read_hls());
    Ok(())
}

/// What reads from the origin.
#[derive(Clone)]
struct Pull {
    http: reqwest::Client,
    base: String,
    clock: Clock,
    ledger: Arc<Ledger>,
}

impl Pull {
    /// Follows the stream of tags.
    async fn read_flv(self) -> anyhow::Result<()> {
        let url = format!("{}/live.flv", self.base);
        let mut stream = loop {
            let stream = self.http.get(&url).send().await?;
            if stream.status().is_success() {
                break stream;
            }
            self.clock.sleep(PAUSE).await;
        };
        let (mut bytes, mut at) = (Vec::new(), flv::HEADER.len());
        loop {
            let chunk = stream.chunk().await?.context("the stream ended")?;
            bytes.extend_from_slice(&chunk);
            while let Some((data, end)) = tag(&bytes, at) {
                let text = text(data).context("a tag without a text")?;
                self.ledger.hear_json(Way::Flv, &text)?;
                at = end;
            }
            let done = at.min(bytes.len());
            bytes.drain(..done);
            at -= done;
        }
    }

    /// Asks for one slot after the other, each before it is there.
    async fn read_segments(self) -> anyhow::Result<()> {
        let head = loop {
            match self.get("head.json").await? {
                Some(head) => break serde_json::from_slice::<Head>(&head)?,
                None => self.clock.sleep(PAUSE).await,
            }
        };
        let mut slot = head.slot.0 + 1;
        loop {
            let name = format!("{}/full/{slot}.json", head.gen_no);
            if let Some(json) = self.get(&name).await? {
                self.ledger.hear_json(Way::Segments, &json)?;
                slot += 1;
            }
        }
    }

    /// Follows the playlist, and gets each new fragment once.
    async fn read_hls(self) -> anyhow::Result<()> {
        let mut seen = BTreeSet::new();
        loop {
            if let Some(playlist) = self.get("live.m3u8").await? {
                let playlist = String::from_utf8(playlist)?;
                for name in playlist.lines().filter(|it| !it.starts_with('#')) {
                    if !seen.insert(name.to_owned()) {
                        continue;
                    }
                    let fragment = self.get(name).await?.context("a fragment is missing")?;
                    let slot = slot(&fragment).context("a fragment without its slot")?;
                    self.ledger.hear_json(Way::Hls, &expand(slot)?)?;
                }
            }
            self.clock.sleep(PLAYLIST).await;
        }
    }

    /// A file; none if it is not there yet.
    async fn get(&self, name: &str) -> anyhow::Result<Option<Vec<u8>>> {
        let url = format!("{}/{name}", self.base);
        let answer = self.http.get(url).timeout(ANSWER_MAX).send().await?;
        if answer.status().as_u16() == 404 {
            return Ok(None);
        }
        ensure!(answer.status().is_success(), "{name} is answered {}", answer.status());
        Ok(Some(answer.bytes().await?.to_vec()))
    }
}

/// The data of the tag that begins at `at`, and where the next one begins; none before it is
/// complete.
fn tag(bytes: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let head = bytes.get(at..at + TAG_HEAD)?;
    let length = usize::from(head[1]) << 16 | usize::from(head[2]) << 8 | usize::from(head[3]);
    let data = at + TAG_HEAD;
    let end = data + length + TAG_TAIL;
    (bytes.len() >= end).then(|| (&bytes[data..data + length], end))
}

/// The strings of a tag's array `json`, put together.
fn text(data: &[u8]) -> Option<Vec<u8>> {
    const KEY: &[u8] = b"\0\x04json\x0a";
    let start = data.windows(KEY.len()).position(|it| it == KEY)? + KEY.len();
    let (count, mut rest) = data.get(start..)?.split_first_chunk::<4>()?;
    let mut text = Vec::new();
    for _ in 0..u32::from_be_bytes(*count) {
        let (&[_, high, low], behind) = rest.split_first_chunk::<3>()?;
        let piece;
        (piece, rest) = behind.split_at_checked(usize::from(u16::from_be_bytes([high, low])))?;
        text.extend_from_slice(piece);
    }
    Some(text)
}

/// The bytes of the private frame in a fragment's first box: to the end of the box.
fn slot(fragment: &[u8]) -> Option<&[u8]> {
    let owner = [fragment::OWNER.as_bytes(), b"\0"].concat();
    let length = usize::try_from(u32::from_be_bytes(*fragment.first_chunk::<4>()?)).ok()?;
    let message = fragment.get(..length)?;
    let start = message.windows(owner.len()).position(|it| it == owner)? + owner.len();
    message.get(start..)
}

#[cfg(test)]
mod tests {
    use proto::id::SlotNo;

    use super::*;

    #[test]
    fn tags_are_read_one_by_one() {
        let long = "x".repeat(100_000);
        let tags = [flv::tag(0, 0, &long).unwrap(), flv::tag(1, 1, "{}").unwrap()].concat();

        let (first, at) = tag(&tags, 0).unwrap();
        let (second, end) = tag(&tags, at).unwrap();

        assert_eq!(text(first).unwrap(), long.as_bytes());
        assert_eq!((text(second).unwrap().as_slice(), end), (&b"{}"[..], tags.len()));
        assert_eq!(tag(&tags[..tags.len() - 1], at), None);
    }

    #[test]
    fn a_fragment_has_its_slot_in_its_first_box() {
        let fragment = fragment::fragment(SlotNo(7), 1_000, b"slot");

        assert_eq!(slot(&fragment), Some(&b"slot"[..]));
        assert_eq!(slot(b"nothing"), None);
    }
}
