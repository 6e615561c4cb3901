//! Real disks that fill up or turn read-only: a small one is mounted for the test alone, in a
//! namespace of its own.

use std::fs;
use std::path::Path;
use std::process::Command;

use broadcaster::Config;

use crate::faults::until;
use crate::stage::{Running, World, comment, config, settings};

/// Set where the disk is mounted: the test runs itself again in there.
const DISK: &str = "BARRAGE_TEST_DISK";

/// Runs a test again where a disk of 4 MiB is mounted on a fresh folder; gives the folder there.
fn with_disk(test: &str) -> Option<std::path::PathBuf> {
    if let Some(disk) = std::env::var_os(DISK) {
        return Some(disk.into());
    }
    let folder = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=4m none \"$0\" && exec \"$@\"";
    // Who may mount needs no users of its own.
    let may_mount = Command::new("unshare").args(["--mount", "true"]).output();
    let may_mount = may_mount.expect("unshare is missing").status.success();
    let users: &[&str] = if may_mount { &[] } else { &["--map-root-user"] };
    let mut inner = Command::new("unshare");
    inner.arg("--mount").args(users).args(["sh", "-c", script]).arg(folder.path());
    inner.arg(std::env::current_exe().unwrap()).args(["--exact", test]);
    let output = inner.env(DISK, folder.path()).output().expect("unshare is missing");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(
        output.status.success() && said.contains("1 passed"),
        "this test mounts a disk in a namespace of its own, which must be allowed: {said}"
    );
    None
}

fn remount(disk: &Path, how: &str) {
    let status = Command::new("mount").args(["-o", how]).arg(disk).status().unwrap();
    assert!(status.success(), "{how}: {status}");
}

/// A broadcaster on the disk, with a comment in slot `.1` that is sealed and in no file.
async fn refused(world: &World, disk: &Path, spoil: impl FnOnce()) -> (Running, u64) {
    world.set_room(settings(), true).await;
    let broadcaster = world.start(Config { store_wait_ms_max: 100, ..config(1) }).await;
    let mut sealed = world.sealed().await;
    sealed.seal_of(1, 0).await;

    spoil();
    world.admit(vec![comment(1)]).await;
    let (_, slot, _) = sealed.flush_of(1).await;
    sealed.seal_of(1, slot).await;

    assert_eq!(broadcaster.segment(1, slot).await.status, 200, "it is served from memory");
    assert!(!file(disk, slot).exists());
    assert_eq!(broadcaster.health.failures().len(), 1);
    let metrics = broadcaster.meter.render();
    assert!(metrics.contains("broadcaster_stores_refusing 1"), "{metrics}");
    assert!(metrics.contains("broadcaster_store_errors_total{call=\"create\",store=\"0\"}"));
    let head = fs::read(disk.join("dm/1/room-1/head.json")).unwrap();
    let head: proto::head::Head = serde_json::from_slice(&head).unwrap();
    assert!(file(disk, head.slot.0).exists() && head.slot.0 < slot, "it names what is there");
    (broadcaster, slot)
}

fn file(disk: &Path, slot: u64) -> std::path::PathBuf {
    disk.join(format!("dm/1/room-1/1/full/{slot}.bin"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_turns_read_only_is_written_again_when_it_can_be() {
    let Some(disk) =
        with_disk("disks::a_disk_that_turns_read_only_is_written_again_when_it_can_be")
    else {
        return;
    };
    let world = World::new(&disk);

    let (broadcaster, slot) = refused(&world, &disk, || remount(&disk, "remount,ro")).await;

    remount(&disk, "remount,rw");
    until(|| file(&disk, slot).exists()).await;
    until(|| broadcaster.health.failures().is_empty()).await;
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_full_to_the_last_byte_is_written_again_when_there_is_room() {
    let Some(disk) = with_disk(
        "disks::a_disk_that_is_full_to_the_last_byte_is_written_again_when_there_is_room",
    ) else {
        return;
    };
    let world = World::new(&disk);
    let ballast = disk.join("ballast");

    let fill = || drop(fs::write(&ballast, vec![1; 4 * 1024 * 1024]));
    let (broadcaster, slot) = refused(&world, &disk, fill).await;

    fs::remove_file(&ballast).unwrap();
    until(|| file(&disk, slot).exists()).await;
    until(|| broadcaster.health.failures().is_empty()).await;
    broadcaster.stop().await;
}
