//! What hostile clients do gets its documented code, and the viewers beside them notice nothing.

use std::time::Duration;

use bytes::Bytes;
use proto::address::{Address, Transport};
use proto::close::CloseCode;
use proto::frame::{Ack, Comment, Credential, Downlink, Join, Outcome, Path, Place, Uplink};
use proto::id::{Cid, ItemId};
use proto::item::Style;
use proto::limits::UPLINK_FRAME_BYTES_MAX;
use proto::verdict::{Reason, Verdict};
use sdk::raw::{self, Raw, RawError};
use sdk::wire::WireError;
use sdk::{Client, Event, Events};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::process::WAIT_MAX;
use crate::site::{STEP_MAX, Site};

const TRANSPORTS: [Transport; 6] = [
    Transport::Tcp,
    Transport::Tls,
    Transport::Ws,
    Transport::Wss,
    Transport::Quic,
    Transport::National,
];

#[tokio::test(flavor = "multi_thread")]
async fn each_attack_gets_its_code_and_nobody_else_notices() {
    let site = Site::start(4000).await;
    let mut bystanders = Bystanders::enter(&site).await;

    for transport in TRANSPORTS {
        let address = site.address(transport);
        attack_with_tokens(&site, address).await;
        bystanders.speak("after the tokens").await;
        attack_with_frames(&site, address).await;
        bystanders.speak("after the frames").await;
        attack_with_texts(&site, address).await;
        bystanders.speak("after the texts").await;
    }
    attack_with_silence(&site).await;
    bystanders.speak("after the silence").await;

    bystanders.check().await;
    site.stop().await;
}

/// Wrong, expired, another's, used before.
async fn attack_with_tokens(site: &Site, address: &Address) {
    let here = address.authority();
    let elsewhere = TRANSPORTS.map(|it| site.address(it).authority());
    let elsewhere = elsewhere.iter().find(|it| **it != here).unwrap();
    // One for each transport: an account whose logins fail too often over TLS has to wait.
    let mallory = format!("mallory-{}", address.transport.name());
    let good = site.token(&here, &mallory, 0);
    let (text, last) = good.split_at(good.len() - 1);
    let forged = format!("{text}{}", if last == "A" { "Q" } else { "A" });

    for (token, code) in [
        (String::new(), CloseCode::TokenInvalid),
        ("dm1.".to_owned() + &"A".repeat(400), CloseCode::TokenInvalid),
        (forged, CloseCode::TokenInvalid),
        (good.replacen("dm1", "dm2", 1), CloseCode::TokenInvalid),
        (site.token(&here, &mallory, 91), CloseCode::TokenExpired),
        (site.token(elsewhere, &mallory, 0), CloseCode::TokenElsewhere),
        (site.token("link-07.example:443", &mallory, 0), CloseCode::TokenInvalid),
    ] {
        let mut raw = connect(site, address).await;
        login(site, &mut raw, &token).await;
        assert_eq!(ended(&mut raw).await, code, "{address:?} {token}");
    }

    let mut first = enter(site, address, &good).await;
    let mut second = connect(site, address).await;
    login(site, &mut second, &good).await;
    assert_eq!(ended(&mut second).await, CloseCode::TokenReplayed, "{address:?}");
    lives(&mut first).await;
}

/// Too long, and not ours: before the login and after it.
async fn attack_with_frames(site: &Site, address: &Address) {
    let large = Bytes::from(vec![3; UPLINK_FRAME_BYTES_MAX + 1]);
    let garbage = Bytes::from_static(b"\x03\x00garbage, garbage, garbage");
    let unknown = Bytes::from_static(b"\xee\x00");
    for (frame, code) in [
        (large, CloseCode::FrameTooLarge),
        (garbage, CloseCode::BadFrame),
        (unknown, CloseCode::BadFrame),
    ] {
        let mut stranger = connect(site, address).await;
        stranger.send_frame(frame.clone()).await.unwrap();
        assert_eq!(ended(&mut stranger).await, code, "{address:?}");

        let token = site.token(&address.authority(), "mallory", 0);
        let mut member = enter(site, address, &token).await;
        member.send_frame(frame).await.unwrap();
        assert_eq!(ended(&mut member).await, code, "{address:?}");
    }
}

/// Marks upon marks are refused to their sender, who may go on.
async fn attack_with_texts(site: &Site, address: &Address) {
    let token = site.token(&address.authority(), "mallory", 0);
    let mut raw = enter(site, address, &token).await;
    let marks = |count| format!("a{}", "\u{301}".repeat(count));
    for (cid, text, reason) in [
        (1, marks(10_000), Reason::TooLong),
        (2, marks(1_000), Reason::Shape),
        (3, "x".repeat(101), Reason::TooLong),
        (4, "back\u{202E}wards".to_owned(), Reason::Shape),
        (5, "a\0b".to_owned(), Reason::Shape),
    ] {
        let drop = Verdict::Drop { reason, retry_after_ms: 0 };
        assert_eq!(say(site, &mut raw, cid, text).await, drop, "{address:?} {cid}");
    }
    lives(&mut raw).await;
    let verdict = say(site, &mut raw, 6, "sorry".to_owned()).await;
    assert!(matches!(verdict, Verdict::Admit(_)), "{verdict:?}");
}

/// Nothing, or a byte now and then: the connection ends with the login's time.
async fn attack_with_silence(site: &Site) {
    let authority = site.address(Transport::Tcp).authority();
    let mut silent = connect(site, site.address(Transport::Tcp)).await;
    let mut silent_ws = connect(site, site.address(Transport::Ws)).await;
    let mut trickle = TcpStream::connect(&authority).await.unwrap();
    let mut half_open: Vec<TcpStream> = Vec::new();
    for transport in [Transport::Tls, Transport::Ws, Transport::Wss, Transport::National] {
        let authority = site.address(transport).authority();
        half_open.push(TcpStream::connect(authority).await.unwrap());
    }
    let since = site.clock.mono();

    // The frame says 60,000 bytes, and they come one by one.
    trickle.write_all(&60_000_u32.to_be_bytes()).await.unwrap();
    while trickle.write_all(&[1]).await.is_ok() {
        assert!(site.clock.mono().since(since) < STEP_MAX, "it trickles for ever");
        site.clock.sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(ended(&mut silent).await, CloseCode::LoginTimeout);
    assert_eq!(ended(&mut silent_ws).await, CloseCode::LoginTimeout);
    for mut stream in half_open {
        let mut bytes = Vec::new();
        // A reset is an end, too.
        let end = timeout(STEP_MAX, stream.read_to_end(&mut bytes)).await;
        assert!(end.is_ok(), "a half-open handshake stays");
    }
}

async fn connect(site: &Site, address: &Address) -> Raw {
    raw::connect(address, Some(site.trust.of(address.transport)), STEP_MAX).await.unwrap()
}

async fn login(site: &Site, raw: &mut Raw, token: &str) {
    let join = Join { room: site.room.clone(), path: Path::Push, resume: None };
    raw.login(Credential::Token(token.to_owned()), None, vec![join]).await.unwrap();
}

async fn enter(site: &Site, address: &Address, token: &str) -> Raw {
    let mut raw = connect(site, address).await;
    login(site, &mut raw, token).await;
    loop {
        match raw.recv().await.unwrap() {
            Downlink::Welcome(_) => {}
            Downlink::LoginOk(_) => return raw,
            other => panic!("{other:?}"),
        }
    }
}

/// How the link ends a connection; over a WebSocket the close frame says it, too.
async fn ended(raw: &mut Raw) -> CloseCode {
    loop {
        match raw.recv().await {
            Ok(Downlink::Refused(refused)) => return refused.code,
            Ok(Downlink::Close(close)) => return close.code,
            Ok(_) => {}
            Err(RawError::Wire(WireError::Closed(Some(code)))) => return code,
            Err(error) => panic!("{error:?}"),
        }
    }
}

async fn lives(raw: &mut Raw) {
    raw.send(&Uplink::Ping { nonce: 11 }).await.unwrap();
    loop {
        match raw.recv().await.unwrap() {
            Downlink::Pong { nonce: 11, .. } => return,
            Downlink::Close(close) => panic!("{close:?}"),
            _ => {}
        }
    }
}

async fn say(site: &Site, raw: &mut Raw, cid: u64, text: String) -> Verdict {
    let (cid, room) = (Cid(cid), site.room.clone());
    let comment = Comment { cid, room, text, style: Style::default(), media_ms: None };
    raw.send(&Uplink::Comment(comment)).await.unwrap();
    loop {
        match raw.recv().await.unwrap() {
            Downlink::Ack(Ack { cid: of, outcome: Outcome::Verdict(verdict) }) if of == cid => {
                return verdict;
            }
            Downlink::Close(close) => panic!("{close:?}"),
            _ => {}
        }
    }
}

/// Viewers who came before the attacks: one speaks, two read, each by another path.
struct Bystanders<'a> {
    site: &'a Site,
    speaker: (Client, Events),
    readers: Vec<(Client, Events)>,
    spoken: Vec<(ItemId, String)>,
}

impl<'a> Bystanders<'a> {
    async fn enter(site: &'a Site) -> Self {
        let mut speaker = site.viewer("speaker", Path::Segments);
        let mut readers =
            vec![site.viewer("reader-1", Path::Push), site.viewer("reader-2", Path::Segments)];
        for (_, events) in readers.iter_mut().chain([&mut speaker]) {
            let connected = async {
                while let Some(event) = events.next().await {
                    if matches!(event, Event::Connected { .. }) {
                        return;
                    }
                }
                panic!("a viewer ended before it came in")
            };
            timeout(WAIT_MAX, connected).await.expect("a connection in time");
        }
        let mut bystanders = Self { site, speaker, readers, spoken: Vec::new() };
        bystanders.settle().await;
        bystanders
    }

    /// Says hello until everybody heard one: from then on nothing may be missed.
    async fn settle(&mut self) {
        for number in 0..self.readers.len() {
            loop {
                self.speak("hello").await;
                let events = &mut self.readers[number].1;
                let heard = async {
                    while let Some(event) = events.next().await {
                        if matches!(event, Event::Show { .. }) {
                            return;
                        }
                    }
                };
                if timeout(Duration::from_secs(3), heard).await.is_ok() {
                    break;
                }
            }
        }
        self.spoken.clear();
    }

    /// Says something, and waits for the verdict.
    async fn speak(&mut self, text: &str) {
        let (client, events) = &mut self.speaker;
        let cid = client.send(&self.site.room, text, Style::default(), None).unwrap();
        let answered = async {
            loop {
                match events.next().await {
                    Some(Event::Ack(ack)) if ack.cid == cid => return ack.outcome,
                    Some(Event::Show { .. }) => {}
                    other => panic!("{other:?}"),
                }
            }
        };
        let outcome = timeout(WAIT_MAX, answered).await.expect("a verdict in time");
        let Outcome::Verdict(Verdict::Admit(id)) = outcome else { panic!("{outcome:?}") };
        self.spoken.push((id, text.to_owned()));
    }

    /// Each reader was shown everything once and in order, and nothing else happened to it.
    async fn check(mut self) {
        for (_, events) in &mut self.readers {
            let last = self.spoken.last().unwrap().0;
            let mut shown: Vec<(ItemId, String)> = Vec::new();
            let mut latest: Option<Place> = None;
            while shown.last().is_none_or(|it| it.0 != last) {
                let event = timeout(WAIT_MAX, events.next()).await.expect("an item in time");
                let Some(Event::Show { place, item, .. }) = event else { panic!("{event:?}") };
                assert!(latest < Some(place), "{latest:?} {place:?}");
                latest = Some(place);
                shown.push((item.id, item.body.text().unwrap_or_default().to_owned()));
            }
            shown.retain(|it| it.1 != "hello" && it.1 != "sorry");
            assert_eq!(shown, self.spoken);
        }
    }
}
