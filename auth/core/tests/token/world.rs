//! A gslb that mints with the keys of the protocol page's vector, and a link that verifies.

use auth_core::keyring::{Keyring, LinkKeyring};
use auth_core::link_id;
use auth_core::mac::Alg;
use auth_core::policy::Policies;
use auth_core::replay::Replays;
use auth_core::revocation::Revocations;
use auth_core::token::{Claims, Rooms, Scope, TokenRefusal, flag, verify};
use proptest::prelude::*;
use proto::control::EpochFact;
use proto::id::{AppId, DeviceId, RoomId, UnitId, ViewerId};
use proto::keys::{Master, Masters};
use proto::time::Wall;

pub(crate) const T: u32 = 600;
pub(crate) const EPOCH: u32 = 2_975_000;
/// The moment at which the vector was minted.
pub(crate) const IAT_S: u32 = EPOCH * T + 30;
pub(crate) const ADDRESS: &str = "link-07.example:443";
pub(crate) const OTHER_ADDRESS: &str = "link-08.example:443";

/// A link with the vector's keys, and the gslb that mints for it.
pub(crate) struct World {
    pub(crate) keyring: Keyring,
    pub(crate) link: LinkKeyring,
    links: [[u8; 16]; 1],
    pub(crate) policies: Policies,
    pub(crate) revocations: Revocations,
}

impl World {
    pub(crate) fn new(alg: Alg) -> Self {
        let hex =
            |from: u8| -> String { (from..from + 32).map(|it| format!("{it:02x}")).collect() };
        let masters = Masters { interval_s: T, masters: vec![Master { kid: 0, key: hex(0x00) }] };
        let mut keyring = Keyring::new(&masters).unwrap();
        for epoch in EPOCH - 1..EPOCH + 7 {
            let (alg, kids) = (alg.code(), vec![0]);
            let fact = EpochFact { epoch, interval_s: T, alg, random: hex(0xa0), kids };
            keyring.handle(&fact, at(IAT_S)).unwrap();
        }
        let keys = keyring.link_keys(UnitId(1), &[ADDRESS.to_owned()], &[AppId(1)]);
        Self {
            keyring,
            link: LinkKeyring::new(&keys).unwrap(),
            links: [link_id(ADDRESS)],
            policies: Policies::default(),
            revocations: Revocations::new(10),
        }
    }

    pub(crate) fn scope(&self) -> Scope<'_, LinkKeyring> {
        Scope {
            keys: &self.link,
            links: &self.links,
            policies: &self.policies,
            revocations: &self.revocations,
        }
    }

    /// Asks the link and the masters, who must agree on whether the token passes.
    pub(crate) fn verify_at(&self, text: &str, now_s: u32) -> Result<Claims, TokenRefusal> {
        let Scope { links, policies, revocations, .. } = self.scope();
        let masters = Scope { keys: &self.keyring, links, policies, revocations };
        let by_link = verify(text, &self.scope(), &mut Replays::new(1), at(now_s));
        let by_masters = verify(text, &masters, &mut Replays::new(1), at(now_s));
        assert_eq!(by_link.is_ok(), by_masters.is_ok());
        by_link
    }
}

/// The end of a second.
pub(crate) fn at(unix_s: u32) -> Wall {
    Wall(u64::from(unix_s) * 1000 + 999)
}

pub(crate) fn claims() -> Claims {
    Claims {
        app: AppId(1),
        link: link_id(ADDRESS),
        iat_s: IAT_S,
        ttl_s: 60,
        flags: flag::SINGLE_USE | flag::MAY_SEND,
        caps: 3,
        jti: std::array::from_fn(|it| 0x10 + u8::try_from(it).unwrap()),
        account: ViewerId::parse("user-42").unwrap(),
        device: Some(DeviceId::parse("ios-1").unwrap()),
        rooms: RoomId::parse("room-1").unwrap().into(),
    }
}

pub(crate) fn any_claims() -> impl Strategy<Value = Claims> {
    let room = "[A-Za-z0-9_-]{1,64}".prop_map(|it| RoomId::parse(&it).unwrap());
    let rooms = proptest::collection::vec(room, 0..=8);
    let numbers = (0..T, 0..=120_u16, any::<u8>(), any::<u16>(), any::<[u8; 16]>());
    let account = "[ -~]{1,64}|[一-龥]{1,21}";
    let device = proptest::option::of("[!-~]{1,32}");
    (numbers, account, device, rooms).prop_map(|(numbers, account, device, rooms)| {
        let (second, ttl_s, flags, caps, jti) = numbers;
        Claims {
            iat_s: EPOCH * T + second,
            ttl_s,
            flags,
            caps,
            jti,
            account: ViewerId::parse(&account).unwrap(),
            device: device.map(|it| DeviceId::parse(&it).unwrap()),
            rooms: Rooms::try_from(rooms).unwrap(),
            ..claims()
        }
    })
}
