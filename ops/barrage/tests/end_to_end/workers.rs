//! `up --workers`: a link that is several processes.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use proto::address::{Address, Transport};
use proto::close::CloseCode;
use proto::frame::{Credential, Downlink, Uplink};
use sdk::raw::{self, Raw};

use crate::get::get;
use crate::process::{Up, barrage, run, said, until};
use crate::site::STEP_MAX;

#[tokio::test]
async fn viewers_at_workers_get_everything() {
    let data = tempfile::tempdir().unwrap();

    let up = Up::start(data.path(), &["--workers", "3", "--crowd", "12", "--for", "20"]).await;
    let links = up.links();
    let ended = up.end().await;

    let tls = links.iter().filter(|it| it.transport == Transport::Tls);
    assert_eq!(tls.map(Address::authority).collect::<BTreeSet<_>>().len(), 3);
    assert_eq!((ended.code, ended.complaints), (Some(0), Vec::new()), "{}", ended.summary);
}

#[tokio::test]
async fn a_worker_that_is_killed_comes_back_where_it_was() {
    let data = tempfile::tempdir().unwrap();
    let up = Up::start(data.path(), &["--workers", "2", "--crowd", "0"]).await;
    ready(&up, 0).await;
    let (before, links) = (workers_of(&up.pid()), up.links());

    kill("-KILL", before.first().unwrap()).await;
    counted(&up, "stack_worker_ends_total{why=\"failed\"} 1").await;
    ready(&up, 0).await;

    let after = workers_of(&up.pid());
    assert_eq!((before.len(), after.len(), before.intersection(&after).count()), (2, 2, 1));
    for link in links.iter().filter(|it| it.transport == Transport::Tcp) {
        tokio::net::TcpStream::connect(link.authority()).await.unwrap();
    }
    up.transcript().await;
}

#[tokio::test]
async fn workers_are_rolled_one_after_the_other_on_a_hangup() {
    let data = tempfile::tempdir().unwrap();
    let up = Up::start(data.path(), &["--workers", "2", "--crowd", "0"]).await;
    ready(&up, 0).await;
    let before = workers_of(&up.pid());

    kill("-HUP", &up.pid()).await;
    ready(&up, 2).await;

    let after = workers_of(&up.pid());
    assert_eq!((after.len(), before.intersection(&after).count()), (2, 0));
    up.transcript().await;
}

#[tokio::test]
async fn while_a_worker_is_rolled_the_sessions_of_its_sibling_stay() {
    let data = tempfile::tempdir().unwrap();
    let up = Up::start(data.path(), &["--workers", "2", "--crowd", "0"]).await;
    ready(&up, 0).await;
    let links = up.links();
    let links: Vec<_> = links.iter().filter(|it| it.transport == Transport::Tcp).collect();
    let mut rolled = enter_at(links[0], data.path()).await;
    let mut sibling = enter_at(links[1], data.path()).await;

    kill("-HUP", &up.pid()).await;
    let first = closed(&mut rolled).await;
    sibling.send(&Uplink::Ping { nonce: 7 }).await.unwrap();
    let answer = sibling.recv().await.unwrap();
    let second = closed(&mut sibling).await;

    assert!(matches!(answer, Downlink::Pong { nonce: 7, .. }), "{answer:?}");
    assert_eq!([first, second], [CloseCode::Draining; 2]);
    up.transcript().await;
}

#[tokio::test]
async fn workers_without_a_supervisor_drain_and_end() {
    let data = tempfile::tempdir().unwrap();
    let up = Up::start(data.path(), &["--workers", "2", "--crowd", "0"]).await;
    ready(&up, 0).await;
    let workers = workers_of(&up.pid());
    let mut session = enter(&up, data.path()).await;

    up.kill().await;

    assert_eq!(workers.len(), 2);
    assert_eq!(closed(&mut session).await, CloseCode::Draining);
    until("the workers' end", async || workers.iter().all(|it| !lives(it)).then_some(())).await;
}

#[tokio::test]
async fn workers_that_are_told_to_end_twice_drain() {
    let data = tempfile::tempdir().unwrap();
    let up = Up::start(data.path(), &["--workers", "2", "--crowd", "0"]).await;
    ready(&up, 0).await;
    let mut session = enter(&up, data.path()).await;

    for worker in workers_of(&up.pid()) {
        kill("-HUP", &worker).await;
        kill("-TERM", &worker).await;
    }
    let ended = up.transcript();

    let (closed, _) = tokio::join!(closed(&mut session), ended);
    assert_eq!(closed, CloseCode::Draining);
}

#[tokio::test]
async fn a_worker_that_hangs_is_replaced_and_the_process_stays_ready() {
    let data = tempfile::tempdir().unwrap();
    let up = Up::start(data.path(), &["--workers", "2", "--crowd", "0"]).await;
    ready(&up, 0).await;
    let before = workers_of(&up.pid());

    kill("-STOP", before.first().unwrap()).await;
    counted(&up, "stack_worker_ends_total{why=\"hung\"} 1").await;
    let readiness = get(up.url("metrics"), "/readyz").await;
    ready(&up, 0).await;

    assert_eq!(readiness.status, 200);
    assert_eq!(before.intersection(&workers_of(&up.pid())).count(), 1);
    up.transcript().await;
}

/// A session with the first worker.
async fn enter(up: &Up, data: &Path) -> Raw {
    enter_at(&up.link(Transport::Tcp), data).await
}

/// A session at this address.
async fn enter_at(link: &Address, data: &Path) -> Raw {
    let authority = link.authority();
    let mint = ["token", "mint", "--address", &authority, "--data"];
    let token = until("a token", async || {
        let minted = run(barrage(mint).arg(data)).await;
        minted.status.success().then(|| said(&minted).to_owned())
    })
    .await;
    let mut raw = raw::connect(link, None, STEP_MAX).await.unwrap();
    raw.login(Credential::Token(token), None, Vec::new()).await.unwrap();
    loop {
        match raw.recv().await.unwrap() {
            Downlink::Welcome(_) => {}
            Downlink::LoginOk(_) => return raw,
            other => panic!("{other:?}"),
        }
    }
}

/// Why a session ends; one that is cut fails.
async fn closed(session: &mut Raw) -> CloseCode {
    loop {
        if let Downlink::Close(close) = session.recv().await.unwrap() {
            return close.code;
        }
    }
}

/// Waits until both workers can do their jobs, so many of them after they were told to end.
async fn ready(up: &Up, rolled: u32) {
    if rolled > 0 {
        counted(up, &format!("stack_worker_ends_total{{why=\"told\"}} {rolled}")).await;
    }
    counted(up, "stack_workers 2").await;
}

async fn counted(up: &Up, line: &str) {
    until(line, async || {
        let metrics = get(up.url("metrics"), "/metrics").await;
        let text = String::from_utf8(metrics.body).unwrap();
        text.lines().any(|it| it == line).then_some(())
    })
    .await;
}

/// Numbers of the workers that a process has.
fn workers_of(pid: &str) -> BTreeSet<String> {
    let processes = fs::read_dir("/proc").unwrap().map(|it| it.unwrap().file_name());
    let pids = processes.filter_map(|it| it.into_string().ok());
    pids.filter(|it| stat(it).is_some_and(|(state, parent)| state != "Z" && parent == pid))
        .collect()
}

fn lives(pid: &str) -> bool {
    stat(pid).is_some_and(|(state, _)| state != "Z")
}

/// The state of a process, and its parent.
fn stat(pid: &str) -> Option<(String, String)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut words = stat.rsplit_once(") ")?.1.split(' ').map(str::to_owned);
    Some((words.next()?, words.next()?))
}

async fn kill(signal: &str, pid: &str) {
    let sent = run(tokio::process::Command::new("kill").args([signal, pid])).await;
    assert!(sent.status.success());
}
