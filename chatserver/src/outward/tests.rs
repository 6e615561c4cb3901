//! Calls to a server of loopback that answers as badly as servers do.

use std::sync::atomic::{AtomicUsize, Ordering};

use channel::DevCerts;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

const PATIENCE: Duration = Duration::from_secs(20);
const SECRET: &str = "0123456789abcdef";

/// A server that gives every connection the same answer, and a caller that may call it.
struct World {
    _folder: TempDir,
    _tasks: Tasks,
    outward: Outward,
    port: u16,
    connections: Arc<AtomicUsize>,
}

impl World {
    /// `networks` may be called; names lead to what `lookup` says.
    async fn start(networks: &[&str], answer: &str, lookup: Lookup) -> Self {
        let folder = TempDir::new().unwrap();
        DevCerts::load_or_create(folder.path(), &[]).unwrap();
        let networks = networks.iter().map(|it| it.parse().unwrap()).collect();
        let config =
            OutwardConfig { networks: Reach::new(networks), ca: folder.path().join("ca.pem") };
        let outward = Outward::with_lookup(&config, Clock::system(), lookup).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::<AtomicUsize>::default();
        let mut tasks = Tasks::default();
        let (answer, count) = (answer.to_owned(), Arc::clone(&connections));
        tasks.spawn("server", async move {
            loop {
                let (stream, _) = listener.accept().await?;
                count.fetch_add(1, Ordering::Relaxed);
                serve(stream, &answer).await;
            }
        });
        Self { _folder: folder, _tasks: tasks, outward, port, connections }
    }

    async fn call(&self, host: &str) -> Result<Vec<u8>, Fault> {
        self.call_within(host, PATIENCE).await
    }

    async fn call_within(&self, host: &str, deadline: Duration) -> Result<Vec<u8>, Fault> {
        let url = format!("http://{host}:{}/hook", self.port);
        let secret = Secret::new(SECRET.to_owned());
        let target = Target::new(&url, &secret, self.outward.reach()).unwrap();
        self.outward.post(&target, b"{}".to_vec(), deadline).await
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

/// Reads one request and gives the answer; an empty one is none, with the connection left open.
async fn serve(mut stream: TcpStream, answer: &str) {
    let mut request = Vec::new();
    while !request.ends_with(b"{}") {
        if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
            return;
        }
    }
    if answer.is_empty() {
        std::future::pending::<()>().await;
    }
    // The caller may be gone.
    stream.write_all(answer.as_bytes()).await.ok();
}

/// Every name has these addresses.
fn always(addresses: &[&str]) -> Lookup {
    let addresses: Vec<IpAddr> = addresses.iter().map(|it| it.parse().unwrap()).collect();
    Arc::new(move |_| std::future::ready(Ok(addresses.clone())).boxed())
}

fn answer(head: &str, body: &str) -> String {
    let bytes = body.len();
    format!("HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {bytes}\r\n\r\n{body}")
}

#[tokio::test]
async fn a_name_in_an_allowed_network_is_called() {
    let world =
        World::start(&["127.0.0.0/8"], &answer("200 OK", "yes"), always(&["127.0.0.1"])).await;

    assert_eq!(world.call("hook.example").await, Ok(b"yes".to_vec()));
    assert_eq!(world.call("127.0.0.1").await, Ok(b"yes".to_vec()));
}

#[tokio::test]
async fn a_name_that_leads_inside_is_not_called() {
    let ok = answer("200 OK", "yes");
    for addresses in [
        &["127.0.0.1"][..],
        &["::ffff:127.0.0.1"],
        // One inner address among others is enough.
        &["1.1.1.1", "127.0.0.1"],
        &["169.254.169.254"],
        &["fd00::1"],
    ] {
        let world = World::start(&["10.0.0.0/8"], &ok, always(addresses)).await;

        assert_eq!(world.call("hook.example").await, Err(Fault::Forbidden), "{addresses:?}");
        assert_eq!(world.connections(), 0);
    }
}

#[tokio::test]
async fn a_name_that_is_bound_anew_is_checked_anew() {
    let asked = Arc::<AtomicUsize>::default();
    let first_only = Arc::clone(&asked);
    let lookup: Lookup = Arc::new(move |_| {
        let turn = first_only.fetch_add(1, Ordering::Relaxed);
        let address = if turn == 0 { "127.0.0.1" } else { "127.0.0.2" };
        std::future::ready(Ok(vec![address.parse().unwrap()])).boxed()
    });
    let world = World::start(&["127.0.0.1/32"], &answer("200 OK", "yes"), lookup).await;

    assert_eq!(world.call("hook.example").await, Ok(b"yes".to_vec()));
    assert_eq!(world.call("hook.example").await, Err(Fault::Forbidden));
    // Once for each connection: what was checked is what is connected to.
    assert_eq!((asked.load(Ordering::Relaxed), world.connections()), (2, 1));
}

#[tokio::test]
async fn a_url_with_an_inner_address_is_refused_at_once_however_it_is_written() {
    let reach = Reach::default();
    let secret = Secret::new(SECRET.to_owned());
    let new = |url: &str| Target::new(url, &secret, &reach);

    for url in [
        "http://127.0.0.1/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://[::1]/",
        "http://[::ffff:10.0.0.1]/",
        "http://169.254.169.254/latest/meta-data",
        "ftp://hook.example/",
        "file:///etc/passwd",
        "https://user:password@hook.example/",
        "hook.example/path",
        "",
    ] {
        assert!(new(url).is_err(), "{url}");
    }
    assert!(new("https://hook.example/review?key=1").is_ok());
    assert!(Target::new("https://hook.example/", &Secret::default(), &reach).is_err());
}

#[tokio::test]
async fn each_bad_answer_has_its_name() {
    let location = "302 Found\r\nlocation: http://169.254.169.254/";
    let big = "x".repeat(ANSWER_BYTES_MAX + 1);
    for (answer, fault) in [
        (answer(location, ""), Fault::Redirect),
        (answer("500 Internal Server Error", "no"), Fault::Status),
        (answer("404 Not Found", "no"), Fault::Status),
        (answer("200 OK", &big), Fault::TooLarge),
        ("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort".to_owned(), Fault::Unreachable),
        ("no HTTP at all\r\n\r\n".to_owned(), Fault::Unreachable),
    ] {
        let world = World::start(&["127.0.0.1"], &answer, always(&["127.0.0.1"])).await;

        assert_eq!(world.call("hook.example").await, Err(fault), "{fault:?}");
        assert_eq!(world.connections(), 1, "{fault:?}");
    }
}

#[tokio::test]
async fn who_does_not_answer_is_waited_for_until_the_deadline() {
    let world = World::start(&["127.0.0.1"], "", always(&["127.0.0.1"])).await;

    let called = world.call_within("hook.example", Duration::from_millis(50)).await;

    assert_eq!(called, Err(Fault::Deadline));
}

#[tokio::test]
async fn who_is_not_there_is_unreachable() {
    let mut world = World::start(&["127.0.0.1"], "", always(&["127.0.0.1"])).await;
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    world.port = closed.local_addr().unwrap().port();
    drop(closed);

    assert_eq!(world.call("hook.example").await, Err(Fault::Unreachable));
}

#[tokio::test]
async fn a_connection_that_takes_longer_than_the_deadline_is_there_for_later_calls() {
    let go = Arc::new(Semaphore::new(0));
    let waits = Arc::clone(&go);
    let lookup: Lookup = Arc::new(move |_| {
        let go = Arc::clone(&waits);
        async move {
            drop(go.acquire().await);
            Ok(vec!["127.0.0.1".parse().unwrap()])
        }
        .boxed()
    });
    let world = World::start(&["127.0.0.1"], &answer("200 OK", "yes"), lookup).await;

    let called = world.call_within("hook.example", Duration::from_millis(20)).await;
    assert_eq!((called, world.connections()), (Err(Fault::Deadline), 0));
    go.add_permits(1);

    let connected = async {
        while world.connections() == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, connected).await.expect("the connection was given up");
}
