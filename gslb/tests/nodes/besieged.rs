//! A node that is attacked: new viewers go elsewhere, and those it has move on without a loss.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kit::task::Tasks;
use link::{ListenerConfig, Siege};
use parking_lot::Mutex;
use proto::address::{Address, Transport};
use proto::id::ItemId;
use proto::item::{Body, Style};
use sdk::{Client, Event, Events};
use tokio::net::TcpStream;

use crate::site::{Site, link_config, listener, names, within};

/// Connections of the flood, in case nobody notices.
const FLOOD_MAX: usize = 200_000;
const VIEWERS: usize = 12;
/// The machine room of the node that takes them in.
const ROOM: &str = "refuge";

#[tokio::test]
async fn viewers_of_a_besieged_node_go_on_at_a_reserve_and_lose_nothing() {
    let mut site = Site::start(|config| {
        config.link.siege = Siege {
            enabled: true,
            failures_per_s_min: 100,
            failures_per_login_min: 5,
            sites_min: 1,
            onset_ms: 1_100,
            calm_ms: 600_000,
        };
    })
    .await;
    let crowd = Crowd::start(&site);
    within(crowd.until(|it| !it.addresses.is_empty())).await;
    let mut config = link_config(ROOM);
    config.listeners.push(ListenerConfig { reserve: true, ..listener(ROOM) });
    let reserve = site.add_link(config).await;
    within(site.until(|it| names(it, ROOM))).await;
    within(crowd.until(|it| it.shown.len() >= 10)).await;

    flood(&site).await;
    within(site.until(|it| it.iter().all(|it| it.machine_room == ROOM))).await;
    within(crowd.until(|it| it.addresses.last() == Some(&reserve[0].authority()))).await;
    let so_far = crowd.sent();
    within(crowd.until(|it| it.shown.len() >= so_far + 10)).await;

    for _ in 0..50 {
        let answer = site.ask().await;
        assert!(!answer.is_empty() && answer.iter().all(|it| it.machine_room == ROOM));
        assert!(!answer.contains(&reserve[0]), "the reserve is told to nobody");
    }
    crowd.check().await;
    site.end().await;
}

/// Connects and hangs up until the node counts as attacked.
async fn flood(site: &Site) {
    let target = |it: &&Address| it.transport == Transport::Tcp;
    let address = site.addrs.link.iter().find(target).unwrap();
    let target: SocketAddr = address.authority().parse().unwrap();
    let besieged = || site.shared.meter.render().contains("link_besieged 1");
    let mut timer = tokio::time::interval(Duration::from_millis(10));
    for connection in 0..FLOOD_MAX {
        drop(TcpStream::connect(target).await.unwrap());
        if connection % 50 == 0 {
            if besieged() {
                return;
            }
            timer.tick().await;
        }
    }
    panic!("the flood was not noticed");
}

/// Viewers, one of whom speaks all the time.
struct Crowd {
    books: Vec<Arc<Mutex<Book>>>,
    clients: Vec<Client>,
    sent: Arc<Mutex<usize>>,
    talk: Tasks,
    readers: Tasks,
}

/// What one viewer saw.
#[derive(Default)]
struct Book {
    /// Where it was connected, in order.
    addresses: Vec<String>,
    shown: Vec<(ItemId, usize)>,
    gaps: usize,
}

impl Crowd {
    fn start(site: &Site) -> Self {
        let (mut books, mut clients) = (Vec::new(), Vec::new());
        let (mut readers, mut talk) = (Tasks::default(), Tasks::default());
        for number in 0..VIEWERS {
            let (client, events) = site.viewer(&format!("viewer-{number}"));
            let book = Arc::new(Mutex::new(Book::default()));
            readers.spawn("viewer", read(events, Arc::clone(&book)));
            books.push(book);
            clients.push(client);
        }
        let sent = Arc::new(Mutex::new(0));
        let (speaker, room, clock) = (clients[0].clone(), site.room.clone(), site.clock.clone());
        let (told, heard) = (Arc::clone(&sent), Arc::clone(&books[0]));
        talk.spawn("speaker", async move {
            loop {
                let is_in = !heard.lock().addresses.is_empty();
                let number = *told.lock();
                let text = number.to_string();
                if is_in && speaker.send(&room, &text, Style::default(), None).is_ok() {
                    *told.lock() += 1;
                }
                clock.sleep(Duration::from_millis(50)).await;
            }
        });
        Self { books, clients, sent, talk, readers }
    }

    fn sent(&self) -> usize {
        *self.sent.lock()
    }

    /// Waits until it is so for every viewer.
    async fn until(&self, is_so: impl Fn(&Book) -> bool) {
        let mut timer = tokio::time::interval(Duration::from_millis(20));
        while !self.books.iter().all(|it| is_so(&it.lock())) {
            timer.tick().await;
        }
    }

    /// Everybody saw everything, once, in one order.
    async fn check(mut self) {
        self.talk.abort();
        let sent = self.sent();
        within(self.until(|it| it.shown.len() >= sent)).await;
        self.clients.iter().for_each(Client::close);
        within(self.readers.join()).await.unwrap();
        let first = self.books[0].lock().shown.clone();
        for book in &self.books {
            let Book { shown, gaps, addresses } = &*book.lock();
            assert_eq!(*gaps, 0);
            assert_eq!(addresses.len(), 2, "it moved once: {addresses:?}");
            assert_eq!(shown.len(), sent, "nothing is repeated: {shown:?}");
            assert_eq!(*shown, first, "all see one order");
        }
        let texts: BTreeSet<usize> = first.iter().map(|it| it.1).collect();
        assert_eq!(texts, (0..sent).collect(), "nothing is lost");
    }
}

async fn read(mut events: Events, book: Arc<Mutex<Book>>) -> anyhow::Result<()> {
    while let Some(event) = events.next().await {
        let mut book = book.lock();
        if let Event::Connected { address, .. } = event {
            book.addresses.push(address.authority());
        } else if let Event::Gap { .. } = event {
            book.gaps += 1;
        } else if let Event::Show { item, .. } = event
            && let Body::Comment { text, .. } = &item.body
        {
            book.shown.push((item.id, text.parse().unwrap()));
        }
    }
    Ok(())
}
