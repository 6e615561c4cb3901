//! A room rests, its broadcaster is killed meanwhile, and the room goes on.

use std::time::Duration;

use broadcaster::Config;
use proto::control::{RoomSettings, Segments};

use crate::stage::{Events, World, comment, config, settings};

/// A room that has said nothing for so long, five slots, rests most likely.
const SILENCE: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
async fn a_room_that_rested_when_its_broadcaster_was_killed_takes_the_next_gen() {
    let folder = tempfile::tempdir().unwrap();
    let quiet = RoomSettings { segments: Segments::Never, ..settings() };
    let resting = || Config { rest_s: 1, ..config(1) };
    let mut ids = 1..;

    let world = World::new(folder.path());
    world.set_room(quiet.clone(), true).await;
    let running = world.start(resting()).await;
    let mut sealed = world.sealed().await;
    let id = ids.next().unwrap();
    world.admit(vec![comment(id)]).await;
    let mut gens = vec![sealed.flush_of(id).await.0];
    gens.push(woken(&world, &mut sealed, &mut ids, gens[0]).await);
    fall_silent(&mut sealed).await;
    running.kill();

    let same_bus = world.start(resting()).await;
    gens.push(woken(&world, &mut sealed, &mut ids, gens[1]).await);
    fall_silent(&mut sealed).await;
    same_bus.kill();

    let world = World::new(folder.path());
    world.set_room(quiet, true).await;
    let lost_bus = world.start(resting()).await;
    let mut sealed = world.sealed().await;
    let id = ids.next().unwrap();
    world.admit(vec![comment(id)]).await;
    gens.push(sealed.flush_of(id).await.0);
    lost_bus.stop().await;

    assert_eq!(gens, [1, 2, 3, 4]);
}

/// The gen in which something is shown after the room rested; until then it was `before`.
async fn woken(
    world: &World,
    sealed: &mut Events,
    ids: &mut impl Iterator<Item = u64>,
    before: u32,
) -> u32 {
    for id in ids {
        fall_silent(sealed).await;
        world.admit(vec![comment(id)]).await;
        let (gen_no, ..) = sealed.flush_of(id).await;
        if gen_no != before {
            return gen_no;
        }
    }
    before
}

async fn fall_silent(sealed: &mut Events) {
    while tokio::time::timeout(SILENCE, sealed.next()).await.is_ok() {}
}
