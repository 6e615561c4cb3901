//! Keys of sealed rooms, told to who is in them: fetched from the auth service when a gen begins,
//! with the next one's, so that viewers have a key before its first segment is there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use parking_lot::Mutex;
use proto::control::Fact;
use proto::frame::Control;
use proto::id::{AppId, Gen, RoomId};
use proto::keys::{ROOM_KEYS_MAX, ROOMS_MAX, RoomGens, RoomKeys, RoomKeysAnswer, RoomKeysRequest};
use tokio::sync::Notify;

use crate::config::ms;
use crate::node::Node;

/// Time for one fetch.
const FETCH_MAX: Duration = Duration::from_secs(3);
/// Bytes of an answer: 256 rooms, 2 gens, 8 masters, 70 bytes a key, and room for names.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;
/// First and last pause after a failure.
const RETRY_MS: (u32, u32) = (100, 10_000);
/// All keys are fetched again so often: a master may have been rotated, or declared void.
const REFRESH: Duration = Duration::from_mins(1);

/// The sealed rooms, and their keys.
#[derive(Debug)]
pub(crate) struct Vault {
    rooms: Mutex<BTreeMap<RoomId, Sealed>>,
    rooms_max: usize,
    /// A gen began whose keys are not here.
    wanted: Notify,
}

#[derive(Debug)]
struct Sealed {
    app: AppId,
    gen_no: Gen,
    /// None yet.
    keys: Option<RoomKeys>,
}

impl Vault {
    pub(crate) fn new(rooms_max: usize) -> Self {
        Self { rooms: Mutex::default(), rooms_max, wanted: Notify::new() }
    }

    /// Takes note of a fact about a sealed room.
    pub(crate) fn learn(&self, fact: &Fact) {
        let Fact::Sealed { app, room, gen_no, ended, .. } = fact else {
            return;
        };
        let mut rooms = self.rooms.lock();
        if *ended {
            rooms.remove(room);
        } else if rooms.len() < self.rooms_max || rooms.contains_key(room) {
            let sealed = Sealed { app: *app, gen_no: *gen_no, keys: None };
            let before = rooms.insert(room.clone(), sealed);
            // Those of the gen before hold this one's key, until the new ones are here.
            let keys = before.filter(|it| it.app == *app).and_then(|it| it.keys);
            rooms.entry(room.clone()).and_modify(|it| it.keys = keys);
            self.wanted.notify_one();
        }
    }

    /// What opens the room for who comes in now, if it is sealed and that is known.
    pub(crate) fn of(&self, app: AppId, room: &RoomId) -> Option<Control> {
        let rooms = self.rooms.lock();
        let sealed = rooms.get(room).filter(|it| it.app == app)?;
        sealed.keys.clone().map(Control::Keys)
    }

    fn question(&self) -> Vec<RoomGens> {
        let rooms = self.rooms.lock();
        let gens = |it: &Sealed| vec![it.gen_no, Gen(it.gen_no.0.saturating_add(1))];
        let room = |(room, it): (&RoomId, &Sealed)| RoomGens {
            app: it.app,
            room: room.clone(),
            gens: gens(it),
        };
        rooms.iter().map(room).collect()
    }

    /// Takes an answer; gives what changed by it.
    fn take(&self, answer: RoomKeysAnswer) -> Vec<RoomKeys> {
        let mut rooms = self.rooms.lock();
        let mut changed = Vec::new();
        for mut told in answer.rooms {
            told.keys.truncate(ROOM_KEYS_MAX);
            let Some(sealed) = rooms.get_mut(&told.room) else {
                continue;
            };
            if sealed.keys.as_ref() != Some(&told) && !told.keys.is_empty() {
                sealed.keys = Some(told.clone());
                changed.push(told);
            }
        }
        changed
    }
}

/// Fetches for ever.
pub(crate) async fn run(node: Arc<Node>, client: reqwest::Client) -> anyhow::Result<()> {
    let mut retry_ms = RETRY_MS.0;
    loop {
        let fetched = fetch(&node, &client).await;
        let pause = match fetched {
            Ok(()) => {
                retry_ms = RETRY_MS.0;
                tokio::select! {
                    () = node.vault.wanted.notified() => {}
                    () = node.clock.sleep(REFRESH) => {}
                }
                continue;
            }
            Err(error) => {
                tracing::warn!(error = format!("{error:#}"), "no keys of sealed rooms");
                // Full jitter, so that a fleet does not knock in step.
                let pause = node.draw_ms(RETRY_MS.0 / 2, retry_ms);
                retry_ms = retry_ms.saturating_mul(2).min(RETRY_MS.1);
                ms(pause)
            }
        };
        node.clock.sleep(pause).await;
    }
}

/// Fetches the keys of all sealed rooms, and tells those that changed.
async fn fetch(node: &Node, client: &reqwest::Client) -> anyhow::Result<()> {
    let mut fetched = Ok(());
    for rooms in node.vault.question().chunks(ROOMS_MAX) {
        let answer = ask(node, client, rooms.to_vec()).await;
        node.counts.room_key_fetch(if answer.is_ok() { "ok" } else { "failed" });
        match answer {
            Ok(answer) => node.vault.take(answer).into_iter().for_each(|it| tell(node, it)),
            // The rest of the rooms may fare better.
            Err(error) => fetched = Err(error),
        }
    }
    fetched
}

fn tell(node: &Node, keys: RoomKeys) {
    if let Some(room) = node.rooms.find(&keys.room) {
        let wake = room.change(|ring| ring.news(Control::Keys(keys), node.clock.mono()));
        room.ring(wake, &node.pump);
    }
}

async fn ask(
    node: &Node,
    client: &reqwest::Client,
    rooms: Vec<RoomGens>,
) -> anyhow::Result<RoomKeysAnswer> {
    let config = &node.config;
    let sent = client
        .post(format!("{}/v1/keys/rooms", config.auth_url.trim_end_matches('/')))
        .bearer_auth(config.secret.expose())
        .header("x-barrage-node", config.node.to_string())
        .json(&RoomKeysRequest { rooms })
        .timeout(FETCH_MAX)
        .send();
    let mut response = sent.await.context("the auth service did not answer")?;
    ensure!(response.status().is_success(), "the auth service says {}", response.status());
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.context("the answer broke off")? {
        ensure!(body.len() + chunk.len() <= ANSWER_BYTES_MAX, "the answer is too long");
        body.extend_from_slice(&chunk);
    }
    serde_json::from_slice(&body).context("the answer is not understood")
}

#[cfg(test)]
mod tests {
    use proto::keys::RoomKey;

    use super::*;

    const APP: AppId = AppId(1);

    fn room() -> RoomId {
        RoomId::parse("paid").unwrap()
    }

    fn sealed(gen_no: u32, ended: bool) -> Fact {
        Fact::Sealed { app: APP, room: room(), gen_no: Gen(gen_no), ended, guests: true }
    }

    fn answer(gens: &[u32]) -> RoomKeysAnswer {
        let key = |it: &u32| RoomKey { gen_no: Gen(*it), kid: 0, key: "00".repeat(16) };
        let keys = gens.iter().map(key).collect();
        RoomKeysAnswer { rooms: vec![RoomKeys { room: room(), keys }] }
    }

    fn gens(control: Option<Control>) -> Vec<u32> {
        let Some(Control::Keys(told)) = control else { return Vec::new() };
        told.keys.iter().map(|it| it.gen_no.0).collect()
    }

    #[test]
    fn keys_are_told_when_they_change_and_stay_while_the_next_are_fetched() {
        let vault = Vault::new(10);
        vault.learn(&sealed(3, false));
        assert!(vault.of(APP, &room()).is_none());

        let first = vault.take(answer(&[3, 4]));
        let again = vault.take(answer(&[3, 4]));
        vault.learn(&sealed(4, false));

        assert_eq!((first.len(), again.len()), (1, 0));
        assert_eq!(vault.question()[0].gens, [Gen(4), Gen(5)]);
        assert_eq!(gens(vault.of(APP, &room())), [3, 4]);
        assert_eq!(vault.take(answer(&[4, 5])).len(), 1);
        assert_eq!(gens(vault.of(APP, &room())), [4, 5]);
    }

    #[test]
    fn a_room_that_is_open_again_or_another_app_s_has_no_keys() {
        let vault = Vault::new(1);
        vault.learn(&sealed(3, false));
        vault.take(answer(&[3]));

        let of_other_app = vault.of(AppId(2), &room());
        vault.learn(&sealed(3, true));

        assert!(of_other_app.is_none() && vault.of(APP, &room()).is_none());
        assert!(vault.take(answer(&[3])).is_empty());
    }
}
