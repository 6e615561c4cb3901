//! Development certificates: made once, reused, and made anew when they are no longer good.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use channel::{DevCerts, DevCertsError};
use proto::suite::Suite;
use proto::time::Wall;
use tempfile::TempDir;

const NOW: Wall = Wall(1_800_000_000_000);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[test]
fn the_key_is_readable_by_its_owner_only() {
    let dir = TempDir::new().unwrap();

    let certs = make(dir.path(), &[], NOW);

    let key_path = dir.path().join("key.pem");
    assert_eq!(fs::metadata(&key_path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_to_string(&key_path).unwrap(), certs.key_pem);
    assert_eq!(fs::read_to_string(dir.path().join("ca.pem")).unwrap(), certs.ca_pem);
    assert!(!format!("{certs:?}").contains("PRIVATE"));
}

#[test]
fn the_next_start_finds_the_same_certificate() {
    let dir = TempDir::new().unwrap();

    let first = make(dir.path(), &["node-1.example"], NOW);
    let second = make(dir.path(), &["node-1.example"], NOW + DAY);
    let fewer_names = make(dir.path(), &[], NOW + DAY);

    assert_eq!(first.chain_pem, second.chain_pem);
    assert_eq!(first.chain_pem, fewer_names.chain_pem);
}

#[test]
fn a_new_name_or_the_coming_end_makes_a_new_certificate() {
    let dir = TempDir::new().unwrap();

    let first = make(dir.path(), &[], NOW);
    let named = make(dir.path(), &["node-1.example"], NOW);
    let last_day = make(dir.path(), &["node-1.example"], NOW + 60 * DAY);
    let renewed = make(dir.path(), &["node-1.example"], NOW + 61 * DAY);

    assert_ne!(first.chain_pem, named.chain_pem);
    assert_eq!(named.chain_pem, last_day.chain_pem);
    assert_ne!(named.chain_pem, renewed.chain_pem);
}

#[test]
fn files_that_are_damaged_or_open_to_others_are_replaced() {
    let dir = TempDir::new().unwrap();
    let key_path = dir.path().join("key.pem");
    let first = make(dir.path(), &[], NOW);

    fs::write(dir.path().join("chain.pem"), "damaged").unwrap();
    let second = make(dir.path(), &[], NOW);
    fs::set_permissions(&key_path, fs::Permissions::from_mode(0o644)).unwrap();
    let third = make(dir.path(), &[], NOW);
    fs::write(&key_path, &first.key_pem).unwrap();
    let fourth = make(dir.path(), &[], NOW);

    assert_ne!(first.chain_pem, second.chain_pem);
    assert_ne!(second.chain_pem, third.chain_pem);
    assert_ne!(third.chain_pem, fourth.chain_pem);
    assert_eq!(fs::metadata(&key_path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn national_certificates_are_kept_and_renewed_in_the_same_way() {
    let dir = TempDir::new().unwrap();
    let at = |now| DevCerts::load_or_create_at(Suite::National, dir.path(), &[], now).unwrap();

    let first = at(NOW);
    let kept = at(NOW + 60 * DAY);
    let renewed = at(NOW + 61 * DAY);

    assert_eq!(first.chain_pem, kept.chain_pem);
    assert_ne!(first.chain_pem, renewed.chain_pem);
    let mode = fs::metadata(dir.path().join("key.pem")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_folder_of_one_mode_is_not_taken_for_the_other() {
    let dir = TempDir::new().unwrap();
    let tls = make(dir.path(), &[], NOW);

    let national = DevCerts::load_or_create_at(Suite::National, dir.path(), &[], NOW).unwrap();

    assert_ne!(tls.chain_pem, national.chain_pem);
    assert_eq!(national.server(&[]).unwrap().suite(), Suite::National);
}

#[test]
fn too_many_names_and_a_name_that_is_none_are_refused() {
    let dir = TempDir::new().unwrap();
    let names: Vec<String> = (0..62).map(|it| format!("n{it}.example")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();

    let too_many = DevCerts::load_or_create_at(Suite::Tls, dir.path(), &names, NOW);
    let no_name = DevCerts::load_or_create_at(Suite::Tls, dir.path(), &["kein name ü"], NOW);

    assert!(matches!(too_many, Err(DevCertsError::TooManyNames { names: 65 })));
    assert!(matches!(no_name, Err(DevCertsError::Make(_))));
}

fn make(dir: &Path, names: &[&str], now: Wall) -> DevCerts {
    DevCerts::load_or_create_at(Suite::Tls, dir, names, now).unwrap()
}
