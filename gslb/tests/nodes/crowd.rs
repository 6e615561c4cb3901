//! Viewers in a room, and what they saw.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kit::task::Tasks;
use parking_lot::Mutex;
use proto::frame::Outcome;
use proto::id::ItemId;
use proto::item::{Body, Style};
use proto::verdict::Verdict;
use sdk::{Client, Event, Events};
use stack::Gift;

use crate::site::{DEADLINE, Site, within};

/// Viewers, one of whom speaks all the time, while a business server sends gifts.
pub(crate) struct Crowd {
    books: Vec<Arc<Mutex<Book>>>,
    clients: Vec<Client>,
    sent: Arc<Mutex<usize>>,
    /// Gifts that were acknowledged.
    given: Arc<Mutex<BTreeSet<ItemId>>>,
    talk: Tasks,
    readers: Tasks,
}

/// What one viewer saw.
#[derive(Default)]
pub(crate) struct Book {
    /// Where it was connected, in order.
    pub(crate) addresses: Vec<String>,
    /// Comments, with their numbers.
    pub(crate) shown: Vec<(ItemId, usize)>,
    gifts: Vec<ItemId>,
    /// What nobody wants to hear: of gaps, and of comments that were not taken.
    complaints: Vec<String>,
}

impl Crowd {
    /// Nobody says anything before all are in: who comes later misses it.
    pub(crate) async fn start(site: &Site, viewers: usize) -> Self {
        let (mut books, mut clients) = (Vec::new(), Vec::new());
        let mut readers = Tasks::default();
        for number in 0..viewers {
            let (client, events) = site.viewer(&format!("viewer-{number}"));
            let book = Arc::new(Mutex::new(Book::default()));
            readers.spawn("viewer", read(events, Arc::clone(&book)));
            books.push(book);
            clients.push(client);
        }
        let (sent, given, talk) = Default::default();
        let mut crowd = Self { books, clients, sent, given, talk, readers };
        crowd.until(|it| !it.addresses.is_empty()).await;
        crowd.speak(site);
        crowd.give(site);
        crowd
    }

    /// One of the viewers speaks from now on.
    fn speak(&mut self, site: &Site) {
        let (speaker, room, clock) =
            (self.clients[0].clone(), site.room.clone(), site.clock.clone());
        let sent = Arc::clone(&self.sent);
        self.talk.spawn("speaker", async move {
            loop {
                let text = sent.lock().to_string();
                if speaker.send(&room, &text, Style::default(), None).is_ok() {
                    *sent.lock() += 1;
                }
                clock.sleep(Duration::from_millis(50)).await;
            }
        });
    }

    /// A business server gives from now on.
    fn give(&mut self, site: &Site) {
        let (business, given) = (site.business.clone(), Arc::clone(&self.given));
        let (room, clock) = (site.room.clone(), site.clock.clone());
        self.talk.spawn("giver", async move {
            for number in 0_u32.. {
                let gift = Gift { viewer: "giver", gift_no: 1, count: 1, lane: "high" };
                let id = business.gift(&room, &format!("gift-{number}"), gift).await?;
                given.lock().insert(id);
                clock.sleep(Duration::from_millis(100)).await;
            }
            Ok(())
        });
    }

    /// Comments so far.
    pub(crate) fn sent(&self) -> usize {
        *self.sent.lock()
    }

    /// Waits until it is so for every viewer.
    pub(crate) async fn until(&self, is_so: impl Fn(&Book) -> bool) {
        let all_are = async {
            let mut timer = tokio::time::interval(Duration::from_millis(20));
            while !self.books.iter().all(|it| is_so(&it.lock())) {
                timer.tick().await;
            }
        };
        if tokio::time::timeout(DEADLINE, all_are).await.is_err() {
            let others = self.books.iter().filter(|it| !is_so(&it.lock()));
            let others: Vec<_> = others.map(|it| it.lock().summary()).collect();
            panic!("of {} comments, these viewers saw: {others:#?}", self.sent());
        }
    }

    /// Where each viewer is, by the authority.
    pub(crate) fn places(&self) -> Vec<String> {
        self.books.iter().filter_map(|it| it.lock().addresses.last().cloned()).collect()
    }

    /// Everybody saw everything, once, in one order. Gives where each viewer was.
    pub(crate) async fn check(mut self) -> Vec<Vec<String>> {
        self.talk.abort();
        let (sent, given) = (self.sent(), self.given.lock().clone());
        assert!(!given.is_empty());
        self.until(|it| it.shown.len() >= sent).await;
        self.until(|it| given.iter().all(|gift| it.gifts.contains(gift))).await;
        self.clients.iter().for_each(Client::close);
        within(self.readers.join()).await.unwrap();
        let first = self.books[0].lock().shown.clone();
        for book in &self.books {
            let Book { shown, gifts, complaints, .. } = &*book.lock();
            assert!(complaints.is_empty(), "{complaints:?}");
            assert_eq!(shown.len(), sent, "nothing is repeated: {shown:?}");
            assert_eq!(*shown, first, "all see one order");
            let once: BTreeSet<_> = gifts.iter().collect();
            assert_eq!(once.len(), gifts.len(), "no gift is repeated: {gifts:?}");
        }
        let texts: BTreeSet<usize> = first.iter().map(|it| it.1).collect();
        assert_eq!(texts, (0..sent).collect(), "nothing is lost");
        self.books.iter().map(|it| it.lock().addresses.clone()).collect()
    }
}

impl Book {
    /// For whoever wonders why something did not happen.
    fn summary(&self) -> String {
        let Self { addresses, shown, gifts, complaints } = self;
        let seen: BTreeSet<_> = shown.iter().map(|it| it.1).collect();
        let missing: Vec<_> =
            (0..seen.last().map_or(0, |it| it + 1)).filter(|it| !seen.contains(it)).collect();
        let (shown, gifts) = (shown.len(), gifts.len());
        format!(
            "{shown} comments, not {missing:?}, {gifts} gifts, at {addresses:?}; {complaints:?}"
        )
    }
}

async fn read(mut events: Events, book: Arc<Mutex<Book>>) -> anyhow::Result<()> {
    while let Some(event) = events.next().await {
        let mut book = book.lock();
        if let Event::Connected { address, .. } = event {
            book.addresses.push(address.authority());
        } else if let Event::Gap { .. } | Event::Unanswered { .. } | Event::Skipped { .. } = event {
            book.complaints.push(format!("{event:?}"));
        } else if let Event::Ack(ack) = &event
            && !matches!(ack.outcome, Outcome::Verdict(Verdict::Admit(_)))
        {
            book.complaints.push(format!("{ack:?}"));
        } else if let Event::Show { item, .. } = event {
            match &item.body {
                Body::Comment { text, .. } => book.shown.push((item.id, text.parse().unwrap())),
                Body::Gift { .. } => book.gifts.push(item.id),
                Body::Notice { .. }
                | Body::Like { .. }
                | Body::Entry
                | Body::Tombstone { .. }
                | Body::System { .. }
                | Body::Effect { .. }
                | Body::Custom { .. }
                | Body::Erasure { .. } => {}
            }
        }
    }
    Ok(())
}
