//! A gift whose process dies at each step of its way, and is started again on the same data: the
//! business server asks again with the same key, and every viewer is shown the gift once.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use channel::ClientTls;
use kit::clock::Clock;
use proto::address::Transport;
use proto::frame::{self, JoinOutcome, Joined};
use proto::id::{ItemId, RoomId, ViewerId};
use sdk::{Client, Event, Options};
use serde_json::Value;
use stack::crowd::{signer, ticket_source};
use stack::{Business, Gift, Identity};
use tempfile::TempDir;

use super::shown;
use crate::api::Api;
use crate::process::{Up, barrage, until};

/// Where the process dies by itself.
const BEFORE_THE_ANSWER: [&str; 3] = ["key_read", "journaled", "published"];
/// The same, after the business server was told that the gift will be shown.
const AFTER_THE_ANSWER: [&str; 4] = ["sealed", "downlink", "created", "head"];

/// Viewers have come back and were shown everything by then.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_gift_that_dies_before_its_answer_is_shown_once_when_it_is_asked_for_again() {
    for place in BEFORE_THE_ANSWER {
        die_at(place).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acknowledged_gift_is_shown_once_wherever_its_process_dies() {
    for place in AFTER_THE_ANSWER {
        die_at(place).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gift_whose_process_is_killed_on_its_answer_is_shown_once() {
    let scene = Scene::new();
    let up = scene.start(None).await;
    let viewers = scene.viewers().await;
    let id = scene.gift("gift").await.expect("an answer");
    up.kill().await;

    scene.go_on("acknowledged", &viewers, Some(id)).await;
}

async fn die_at(place: &str) {
    let scene = Scene::new();
    let up = scene.start(Some(place)).await;
    let viewers = scene.viewers().await;
    let acknowledged = scene.gift("gift").await;
    let ended = up.end().await;
    assert_eq!(ended.code, None, "{place}: it was killed");

    scene.go_on(place, &viewers, acknowledged).await;
}

/// A system with addresses that stay, and whoever wants to be let in there.
pub(super) struct Scene {
    data: TempDir,
    enter: u16,
    api: u16,
    identity: Identity,
    room: RoomId,
    clock: Clock,
}

impl Scene {
    pub(super) fn new() -> Self {
        let data = tempfile::tempdir().unwrap();
        let identity = Identity::load_or_create(data.path()).unwrap();
        let scene = Self {
            enter: free_port(),
            api: free_port(),
            identity,
            room: RoomId::parse("demo").unwrap(),
            clock: Clock::system(),
            data,
        };
        std::fs::write(scene.file(), scene.configuration()).unwrap();
        scene
    }

    pub(super) fn data(&self) -> &Path {
        self.data.path()
    }

    fn file(&self) -> std::path::PathBuf {
        self.data.path().join("barrage.toml")
    }

    fn configuration(&self) -> String {
        let Self { enter, api, .. } = self;
        let sections = ["admin", "page", "auth", "gslb.collector", "broadcaster"];
        let free = sections.map(|it| format!("[{it}]\nlisten = '127.0.0.1:0'\n")).concat();
        format!(
            "{free}[gslb]\nlisten = '127.0.0.1:{enter}'\n[chatserver]\nlisten = '127.0.0.1:{api}'\n\
             [[link.listeners]]\nlisten = '127.0.0.1:0'\ntransport = 'tcp'\nhost = '127.0.0.1'\n"
        )
    }

    /// Starts everything; it dies where `place` says.
    pub(super) async fn start(&self, place: Option<&str>) -> Up {
        let mut command = barrage(["up", "--crowd", "0", "--config"]);
        command.arg(self.file());
        if let Some(place) = place {
            command.env(kit::dying::DIE_AT, place);
        }
        let up = Up::start_with(&mut command, self.data.path()).await;
        Api::of(&up, self.data.path()).await;
        up
    }

    fn http(&self) -> reqwest::Client {
        let run = std::fs::read(self.data.path().join("run.json")).unwrap();
        let run: Value = serde_json::from_slice(&run).unwrap();
        let tls = ClientTls::trusting(run["ca_pem"].as_str().unwrap()).unwrap();
        sdk::http::client(&tls).unwrap()
    }

    /// Asks for a gift; nothing if nobody answers.
    pub(super) async fn gift(&self, key: &str) -> Option<ItemId> {
        let gift = Gift { viewer: "patron", gift_no: 7, count: 1, lane: "high" };
        self.business().gift(&self.room, key, gift).await.ok()
    }

    fn business(&self) -> Business {
        let base = format!("http://127.0.0.1:{}", self.api);
        Business::new(self.http(), base, self.identity.api_key.clone())
    }

    /// A viewer of each path, in the room, who has seen something there and comes back by itself.
    pub(super) async fn viewers(&self) -> Viewers {
        let viewers = [("push", frame::Path::Push), ("segments", frame::Path::Segments)];
        let viewers = Viewers(viewers.map(|(account, path)| self.viewer(account, path)).into());
        viewers.wait_in("at first", 1).await;
        let id = self.business().notice(&self.room, "welcome", "welcome").await.unwrap();
        viewers.wait_for("at first", id).await;
        viewers
    }

    fn viewer(&self, account: &str, path: frame::Path) -> Viewer {
        let app = self.identity.app();
        let signer = Arc::new(signer(&app).unwrap());
        let account = ViewerId::parse(account).unwrap();
        let ticket = ticket_source(&signer, &app, &account, &self.room, &self.clock);
        let (enter, seed) = (self.enter, kit::seed::fresh().unwrap());
        let url = format!("http://127.0.0.1:{enter}/v1/enter");
        let clock = self.clock.clone();
        let mut options = Options::new(url, Arc::new(ticket), self.http(), clock, seed);
        options.rooms = vec![(self.room.clone(), path)];
        options.transports = vec![Transport::Tcp];
        let (client, mut events) = Client::start(options);
        let book = Arc::new(Mutex::new(Book::default()));
        let writing = Arc::clone(&book);
        let reading = async move {
            while let Some(event) = events.next().await {
                writing.lock().unwrap().write(&event);
            }
        };
        #[expect(clippy::disallowed_methods, reason = "it ends with the test")]
        let reader = tokio::spawn(reading);
        Viewer { book, _client: client, _reader: reader }
    }

    /// The next life: what was promised is kept, and what was not is shown at most once.
    async fn go_on(&self, place: &str, viewers: &Viewers, acknowledged: Option<ItemId>) {
        let up = self.start(None).await;
        viewers.wait_in(place, 2).await;

        let id = until("an answer", async || self.gift("gift").await).await;
        assert!(acknowledged.is_none_or(|it| it == id), "{place}: the same key is the same gift");
        viewers.wait_for(place, id).await;
        let after = until("a gift after it", async || self.gift("after").await).await;
        viewers.wait_for(place, after).await;
        let files = until("the gift after it in a file", async || {
            let files = shown(self.data.path());
            files.contains_key(&after.to_string()).then_some(files)
        })
        .await;

        for viewer in &viewers.0 {
            let book = viewer.book.lock().unwrap();
            assert!(book.shown.values().all(|&it| it == 1), "{place}: {:?}", book.shown);
        }
        assert_eq!(files[&id.to_string()].len(), 1, "{place}: {files:?}");
        up.kill().await;
    }
}

/// What a viewer was told.
#[derive(Debug, Default)]
struct Book {
    /// How often it came, and whether it is in the room.
    connections: usize,
    is_in: bool,
    shown: BTreeMap<ItemId, usize>,
    recalled: BTreeSet<ItemId>,
}

impl Book {
    fn write(&mut self, event: &Event) {
        match event {
            Event::Connected { rooms, .. } => {
                self.connections += 1;
                self.is_in = rooms.iter().any(is_in);
            }
            Event::Joined(joined) => self.is_in = is_in(joined),
            Event::Disconnected { .. } => self.is_in = false,
            Event::Recall { id, .. } => {
                self.recalled.insert(*id);
            }
            Event::Show { item, .. } => *self.shown.entry(item.id).or_default() += 1,
            _ => {}
        }
    }
}

struct Viewer {
    book: Arc<Mutex<Book>>,
    _client: Client,
    _reader: tokio::task::JoinHandle<()>,
}

pub(super) struct Viewers(Vec<Viewer>);

impl Viewers {
    fn all(&self, is_so: impl Fn(&Book) -> bool) -> bool {
        self.0.iter().all(|it| is_so(&it.book.lock().unwrap()))
    }

    pub(super) fn have(&self, id: ItemId) -> bool {
        self.all(|it| it.shown.contains_key(&id))
    }

    pub(super) fn took_off(&self, id: ItemId) -> bool {
        self.all(|it| it.recalled.contains(&id))
    }

    async fn wait_in(&self, place: &str, connections: usize) {
        let is_back = |it: &Book| it.is_in && it.connections >= connections;
        self.wait(place, "every viewer in the room", is_back).await;
    }

    async fn wait_for(&self, place: &str, id: ItemId) {
        self.wait(place, &format!("item {id}"), |it| it.shown.contains_key(&id)).await;
    }

    async fn wait(&self, place: &str, what: &str, is_so: impl Fn(&Book) -> bool) {
        let seen = until("what viewers wait for", async || self.all(&is_so).then_some(()));
        if tokio::time::timeout(PATIENCE, seen).await.is_err() {
            let books: Vec<_> = self.0.iter().map(|it| it.book.lock().unwrap()).collect();
            panic!("{place}: {what} did not come: {books:?}");
        }
    }
}

fn is_in(joined: &Joined) -> bool {
    matches!(joined.outcome, JoinOutcome::In { .. })
}

/// A port that nobody has: the system takes it in each of its lives.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
