//! Outside libraries have one door each: the place that may name them, so that they can be
//! replaced there.

use crate::nothing_wrong;
use crate::tree::{Source, has_word, sources};
use crate::workspace::{Package, packages};

/// A library and the files or folders that may name it.
struct Door {
    library: &'static str,
    /// The packages whose manifests may name it.
    packages: &'static [&'static str],
    /// Paths from the root; a folder ends in a slash.
    places: &'static [&'static str],
    /// At most this many files of each package.
    files_max: usize,
}

const fn door(
    library: &'static str,
    packages: &'static [&'static str],
    places: &'static [&'static str],
) -> Door {
    Door { library, packages, places, files_max: usize::MAX }
}

const DOORS: &[Door] = &[
    door("flatbuffers", &["proto"], &["proto/src/codec.rs", "proto/src/codec/", "proto/tests/"]),
    door("rdkafka", &["bus"], &["proto/bus/src/kafka.rs"]),
    door("redis", &["kit"], &["kit/src/redis.rs"]),
    door("aws-sdk-s3", &["broadcaster"], &["broadcaster/src/store/s3.rs"]),
    door("rustls", &["channel"], &["auth/channel/"]),
    door("tokio-rustls", &["channel"], &["auth/channel/"]),
    door("rcgen", &["channel"], &["auth/channel/"]),
    door("csv", &["gslb"], &["gslb/src/place/csv_file.rs"]),
    door("maxminddb", &["gslb"], &["gslb/src/place/mmdb_file.rs"]),
    door("ipnet", &["kit"], &["kit/src/proxy.rs"]),
    door(
        "quinn",
        &["link", "sdk"],
        &["link/src/accept/", "link/tests/", "sdk/rust/src/wire/", "sdk/rust/tests/"],
    ),
    door("quinn-proto", &["channel"], &["auth/channel/src/quic.rs", "auth/channel/src/quic/"]),
    door(
        "brotli",
        &["broadcaster-core", "sdk"],
        &["broadcaster/core/src/pack/", "sdk/rust/tests/"],
    ),
    door("libdeflater", &["broadcaster-core"], &["broadcaster/core/src/pack/"]),
    door("brotli-decompressor", &["proto"], &["proto/src/encoding.rs"]),
    door(
        "zstd",
        &["proto", "broadcaster-core", "sdk"],
        &[
            "proto/src/dictionary.rs",
            "proto/src/encoding.rs",
            "broadcaster/core/src/pack/",
            "sdk/rust/tests/",
        ],
    ),
    door("mimalloc", &["barrage", "soak"], &["ops/barrage/src/main.rs", "ops/soak/src/main.rs"]),
    door(
        "rml_rtmp",
        &["broadcaster", "soak"],
        &["broadcaster/src/push/", "ops/soak/src/latency/sink.rs"],
    ),
    door("sm-crypto", &["auth-core"], &["auth/core/src/oracle.rs"]),
    door("sm2", &["channel"], &["auth/channel/", "auth/core/src/oracle.rs"]),
    door(
        "sm3",
        &["auth-core", "channel", "bench"],
        &["auth/core/", "auth/channel/", "ops/bench/src/token.rs", "ops/bench/src/token/"],
    ),
    door("sm4", &["channel"], &["auth/channel/", "auth/core/src/oracle.rs"]),
    door("x509-cert", &["channel"], &["auth/channel/"]),
    Door {
        files_max: 1,
        ..door("governor", &["link", "gslb", "chatserver"], &["link/", "gslb/", "chatserver/"])
    },
];

fn names(source: &Source, library: &str) -> bool {
    let name = library.replace('-', "_");
    let path = format!("{name}::");
    let import = format!("use {name}");
    source
        .code()
        .any(|(_, line)| has_path(line, &path) || (line.contains(&import) && has_word(line, &name)))
}

/// Whether `path` (`name::`) begins a path in this line.
fn has_path(line: &str, path: &str) -> bool {
    let is_part = |it: char| it.is_alphanumeric() || it == '_' || it == ':';
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(is_part) || line[..at].ends_with(" ::")
    })
}

fn wrong_sources(sources: &[Source]) -> Vec<String> {
    let mut complaints = Vec::new();
    for door in DOORS {
        let named: Vec<&str> = sources
            .iter()
            .filter(|it| !it.is_generated() && !it.is_tidy() && names(it, door.library))
            .map(|it| it.path.as_str())
            .collect();
        for path in &named {
            if !door
                .places
                .iter()
                .any(|it| path == it || (it.ends_with('/') && path.starts_with(it)))
            {
                complaints.push(format!("{path} names {}, whose door is elsewhere", door.library));
            }
        }
        for place in door.places {
            let files = named.iter().filter(|it| it.starts_with(place)).count();
            if files > door.files_max {
                complaints.push(format!("{files} files of {place} name {}", door.library));
            }
        }
    }
    complaints
}

fn wrong_manifests(packages: &[Package]) -> Vec<String> {
    let mut complaints = Vec::new();
    for door in DOORS {
        for package in packages.iter().filter(|it| it.outside.contains(door.library)) {
            if !door.packages.contains(&package.name.as_str()) {
                complaints.push(format!("{} imports {}", package.name, door.library));
            }
        }
    }
    complaints
}

#[test]
fn every_library_is_named_only_behind_its_door() {
    nothing_wrong(&wrong_sources(&sources()));
}

#[test]
fn every_library_is_imported_only_by_the_owner_of_its_door() {
    nothing_wrong(&wrong_manifests(&packages()));
}

#[test]
fn a_name_outside_its_door_is_noticed() {
    let sources = [
        Source::sample("link/src/a.rs", "use rustls::ClientConfig;"),
        Source::sample("link/src/b.rs", "let it = governor::Quota::per_second(1);"),
        Source::sample("link/src/c.rs", "use governor::{Quota};"),
        Source::sample("auth/channel/src/d.rs", "use rustls::ClientConfig;"),
        Source::sample("gslb/src/e.rs", "use crate::quinn::x; // redis::Client"),
    ];

    let complaints = wrong_sources(&sources);

    let expected =
        ["link/src/a.rs names rustls, whose door is elsewhere", "2 files of link/ name governor"];
    assert_eq!(complaints, expected);
}
