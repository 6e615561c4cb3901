//! The auth service, as far as a link asks it.

use std::sync::Arc;

use auth_core::keyring::{Keyring, epoch_of};
use axum::routing::post;
use axum::{Json, Router};
use channel::DevCerts;
use kit::task::Tasks;
use proto::control::EpochFact;
use proto::id::Gen;
use proto::keys::{
    LinkKeysRequest, Master, Masters, RoomGens, RoomKeys, RoomKeysAnswer, RoomKeysRequest,
};
use proto::time::Wall;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::APP;

const INTERVAL_S: u32 = 600;

/// Keys of one master for some epochs.
pub(super) fn keyring(now: Wall) -> Keyring {
    let masters =
        Masters { interval_s: INTERVAL_S, masters: vec![Master { kid: 0, key: "07".repeat(32) }] };
    let mut keyring = Keyring::new(&masters).unwrap();
    let current = epoch_of(now, INTERVAL_S);
    for epoch in current - 1..=current + 6 {
        let fact = EpochFact {
            epoch,
            interval_s: INTERVAL_S,
            alg: 1,
            random: "a0".repeat(32),
            kids: vec![0],
        };
        keyring.handle(&fact, now).unwrap();
    }
    keyring
}

/// Answers `POST /v1/keys/link` and `POST /v1/keys/rooms` as the auth service does.
pub(super) async fn serve_keys(
    certs: &DevCerts,
    keyring: &Arc<Keyring>,
    shutdown: &CancellationToken,
    tasks: &mut Tasks,
) -> String {
    let (keyring, of_rooms) = (Arc::clone(keyring), Arc::clone(keyring));
    let answer = post(|Json(request): Json<LinkKeysRequest>| async move {
        Json(keyring.link_keys(request.unit, &request.addresses, &[APP]))
    });
    let rooms = post(|Json(request): Json<RoomKeysRequest>| async move {
        let room = |it: &RoomGens| {
            let of_gen = |gen_no: &Gen| of_rooms.room_keys(it.app, &it.room, *gen_no, Wall(0));
            let keys = it.gens.iter().flat_map(of_gen).map(|it| it.tell()).collect();
            RoomKeys { room: it.room.clone(), keys }
        };
        Json(RoomKeysAnswer { rooms: request.rooms.iter().map(room).collect() })
    });
    let router = Router::new().route("/v1/keys/link", answer).route("/v1/keys/rooms", rooms);
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", tcp.local_addr().unwrap());
    let tls = certs.server(&[b"h2", b"http/1.1"]).unwrap();
    tasks.spawn("auth", kit::http::serve(tcp, tls, router, shutdown.clone()));
    url
}
