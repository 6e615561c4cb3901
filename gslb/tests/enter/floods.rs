//! Whoever asks too much, too long or too slowly, and what it costs.

use std::time::Duration;

use proto::enter::{EnterRequest, EnterResponse, Problem};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::world::{APP, World, api_key, check, ticket, ticket_with};

/// Questions of each kind.
const QUESTIONS: u32 = 3_000;
/// Bytes that a flood may leave behind. All of its bodies together are ten times as many; the other
/// tests of this process take some, too.
const LEFT_BYTES_MAX: u64 = 48 * 1024 * 1024;
const OVERSIZED: usize = 128 * 1024;

#[tokio::test]
async fn a_flood_is_refused_and_leaves_no_memory_behind() {
    let world = World::start_with(|config| config.rate.enabled = false).await;
    let mut changed = ticket("viewer");
    changed.replace_range(changed.len() - 4.., "AAAA");
    let of = |ticket: &str| {
        let request = EnterRequest { ticket: ticket.to_owned(), ..EnterRequest::default() };
        serde_json::to_vec(&request).unwrap()
    };
    let expired = ticket_with("viewer", |it| (it.iat, it.exp) = (it.iat - 600, it.iat - 300));
    let floods = [
        (of(&changed), 401, "ticket_wrong_signature"),
        (of("a.b.c"), 400, "ticket_malformed"),
        (of(&expired), 401, "ticket_expired"),
        (b"{\"ticket\":".to_vec(), 400, "malformed"),
        (vec![b' '; OVERSIZED], 413, "too_large"),
    ];
    for (body, status, code) in &floods {
        check(world.post(body.clone()).send().await.unwrap(), *status, code).await;
    }
    let before = resident_bytes();

    for (body, status, code) in &floods {
        for _ in 0..QUESTIONS {
            // A refusal may come before the body's end, and the rest is not taken any more.
            if let Ok(refused) = world.post(body.clone()).send().await {
                check(refused, *status, code).await;
            }
        }
    }

    let left = resident_bytes().saturating_sub(before);
    assert!(left < LEFT_BYTES_MAX, "{left} bytes are left of the flood");
    assert_eq!(
        world.count(r#"gslb_refusals_total{reason="ticket_expired"}"#),
        u64::from(QUESTIONS) + 1
    );
}

#[tokio::test]
async fn a_flood_from_one_address_costs_no_look_at_its_tickets() {
    let world = World::start_with(|config| (config.rate.per_s, config.rate.burst) = (1, 10)).await;
    let mut changed = ticket("viewer");
    changed.replace_range(changed.len() - 4.., "AAAA");
    let request = EnterRequest { ticket: changed, ..EnterRequest::default() };

    let mut limited = 0;
    for _ in 0..QUESTIONS {
        let response = world.ask(&request).await;
        if response.status() == 429 {
            let problem = check(response, 429, "rate_limited").await;
            assert!((1..=1_000).contains(&problem.retry_after_ms), "{problem:?}");
            limited += 1;
        }
    }

    assert!(limited > QUESTIONS / 2, "{limited}");
    let looked = world.count(r#"gslb_refusals_total{reason="ticket_wrong_signature"}"#);
    assert_eq!(looked + u64::from(limited), u64::from(QUESTIONS));
}

#[tokio::test]
async fn whoever_asks_what_cannot_be_read_is_told_to_wait_as_well() {
    let world = World::start_with(|config| {
        (config.rate.per_s, config.rate.burst) = (1, 10);
        config.trusted_hops = 1;
    })
    .await;
    let get = |query: &str| world.client.get(world.url(&format!("/v1/enter.txt{query}")));
    let batch = || world.client.post(world.url("/v1/enter:batch"));
    let unread = [
        (get("?colour=1"), 400),
        (get("?transports=smoke"), 400),
        (world.post(b"{".to_vec()), 400),
        (world.post(vec![b' '; 8 * 1024 + 1]), 413),
        (batch(), 403),
        (batch().bearer_auth("guess"), 401),
        (batch().bearer_auth(api_key(APP)).body("{"), 400),
    ];

    for (at, (request, status)) in unread.into_iter().enumerate() {
        let request = request.header("x-forwarded-for", format!("203.0.113.{at}"));
        let mut statuses = Vec::new();
        for _ in 0..50 {
            let response = request.try_clone().unwrap().send().await.unwrap();
            statuses.push(response.status().as_u16());
        }

        assert_eq!(statuses[0], status);
        assert!(statuses.contains(&429), "{at}: {statuses:?}");
    }
}

#[tokio::test]
async fn beyond_what_all_together_may_ask_each_is_told_another_time() {
    let world = World::start_with(|config| {
        config.rate.all_per_s = 1;
        config.full.returns_per_s = 10;
    })
    .await;
    let request = EnterRequest { ticket: ticket("viewer"), ..EnterRequest::default() };

    let mut times = Vec::new();
    for _ in 0..50 {
        let response = world.ask(&request).await;
        if response.status() == 503 {
            let problem: Problem = response.json().await.unwrap();
            if problem.code == "busy" {
                times.push(problem.retry_after_ms);
            }
        }
    }

    assert!(times.len() > 25, "{times:?}");
    assert!(times.iter().all(|it| *it >= 1_000), "{times:?}");
    times.sort_unstable();
    let apart = times.windows(2).filter(|it| it[0] < it[1]);
    assert!(apart.count() > 10, "{times:?}");
}

#[tokio::test]
async fn a_body_that_does_not_come_is_refused_in_time_and_delays_nobody() {
    let world = World::start_with(|config| config.http.answer_ms_max = 200).await;
    let _link = world.link(2).await;
    world.ready().await;
    let mut slow = Vec::new();
    for _ in 0..50 {
        let mut stream = TcpStream::connect(world.gslb).await.unwrap();
        let head = "POST /v1/enter HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\
                    content-length: 100\r\n\r\n{\"tick";
        stream.write_all(head.as_bytes()).await.unwrap();
        slow.push(stream);
    }

    let answer: EnterResponse = world.enter(&ticket("viewer")).await;

    assert_eq!(answer.addresses.len(), 2);
    for mut stream in slow {
        let mut answer = String::new();
        let read = stream.read_to_string(&mut answer);
        tokio::time::timeout(Duration::from_secs(20), read).await.unwrap().unwrap();
        assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
        assert!(answer.contains("\r\nretry-after: 1\r\n"), "{answer}");
        assert!(answer.contains("\"code\":\"late\""), "{answer}");
    }
}

/// What this process has in memory.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}
