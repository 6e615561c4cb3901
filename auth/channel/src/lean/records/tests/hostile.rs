//! What no honest client sends.

use super::*;

#[test]
fn what_has_no_place_after_a_handshake_is_refused() {
    let check = |kind: u8, content: &[u8], expected: Result<Opened, Fault>| {
        let (mut server, mut client) = mirrored(cipher_suite::TLS13_AES_128_GCM_SHA256);
        let record = sealed_one(&mut client, kind, content);
        assert_eq!(opened(&mut server, &record), [expected], "{kind}: {content:?}");
    };

    check(HANDSHAKE, &[24, 0, 0, 1, 0], Ok(Opened::Nothing));
    check(HANDSHAKE, &[24, 0, 0, 1, 1], Ok(Opened::Nothing));
    check(HANDSHAKE, &[24, 0, 0, 1, 2], Err(Fault::Value));
    // In parts, twice, with more behind it, another message, nothing.
    check(HANDSHAKE, &[24, 0, 0], Err(Fault::Message));
    check(HANDSHAKE, &[24, 0, 0, 1, 0, 24, 0, 0, 1, 0], Err(Fault::Message));
    check(HANDSHAKE, &[24, 0, 0, 2, 0, 0], Err(Fault::Message));
    check(HANDSHAKE, &[1, 0, 0, 1, 0], Err(Fault::Message));
    check(HANDSHAKE, &[], Err(Fault::Message));
    check(ALERT, &[WARNING, CLOSE_NOTIFY], Ok(Opened::End));
    check(ALERT, &[FATAL, CLOSE_NOTIFY], Ok(Opened::End));
    check(ALERT, &[WARNING, USER_CANCELED], Ok(Opened::Nothing));
    check(ALERT, &[WARNING, 42], Err(Fault::Alert(42)));
    check(ALERT, &[FATAL, 20], Err(Fault::Alert(20)));
    check(ALERT, &[FATAL], Err(Fault::Form));
    check(ALERT, &[FATAL, 20, 0], Err(Fault::Form));
    check(ALERT, &[], Err(Fault::Message));
    check(20, &[1], Err(Fault::Message));
    check(24, &[1, 0, 1], Err(Fault::Message));
    // Padding and nothing else.
    check(0, &[0; 20], Err(Fault::Message));
    check(0, &[], Err(Fault::Message));
    check(DATA, &[], Ok(Opened::Nothing));
    check(DATA, &[7], Ok(Opened::Data(1)));
}

#[test]
fn a_text_of_2_to_the_14_bytes_is_the_longest() {
    let (mut server, mut client) = mirrored(cipher_suite::TLS13_AES_128_GCM_SHA256);
    let text = |bytes: usize| [vec![7; bytes], vec![DATA]].concat();

    let mut longest = sealed_text(&mut client, &text(TEXT_BYTES_MAX));
    let mut longer = sealed_text(&mut client, &text(TEXT_BYTES_MAX + 1));

    assert_eq!(server.open(&mut longest), Ok(Opened::Data(TEXT_BYTES_MAX)));
    assert_eq!(server.open(&mut longer), Err(Fault::Length));
}

#[test]
fn a_header_is_believed_only_when_it_may_be_one() {
    let length = |bytes: u16| [&[DATA, 3, 3], &bytes.to_be_bytes()[..]].concat();

    assert_eq!(record_bytes(&length(0)[..4]), Ok(None));
    assert_eq!(record_bytes(&length(17)), Ok(Some(22)));
    assert_eq!(record_bytes(&length(16_640)), Ok(Some(RECORD_BYTES_MAX)));
    assert_eq!(record_bytes(&length(16_641)), Err(Fault::Length));
    // A change of ciphers, an alert and a message that are not sealed; a request in plain text.
    for plain in [&[20, 3, 3, 0, 1][..], &[21, 3, 3, 0, 2], &[22, 3, 3, 0, 5], b"GET /"] {
        assert_eq!(record_bytes(plain), Err(Fault::Message));
    }
}

#[test]
fn records_without_data_are_borne_so_many_times() {
    let (mut server, mut client) = mirrored(cipher_suite::TLS13_AES_128_GCM_SHA256);
    let mut open = |content: &[u8]| opened(&mut server, &sealed_one(&mut client, DATA, content));

    for _ in 0..QUIET_RECORDS_MAX {
        assert_eq!(open(&[]), [Ok(Opened::Nothing)]);
    }
    assert_eq!(open(b"x"), [Ok(Opened::Data(1))]);
    for _ in 0..QUIET_RECORDS_MAX {
        assert_eq!(open(&[]), [Ok(Opened::Nothing)]);
    }
    assert_eq!(open(&[]), [Err(Fault::Quiet)]);
}

#[test]
fn changes_of_keys_are_earned_with_data() {
    let (mut server, mut client) = mirrored(cipher_suite::TLS13_AES_128_GCM_SHA256);
    let change = |server: &mut Records, client: &mut Records| {
        let said = [sealed(client, b"x"), {
            let update = sealed_one(client, HANDSHAKE, &[24, 0, 0, 1, UPDATE_NOT_REQUESTED]);
            client.ours.renew(client.cipher);
            update
        }];
        opened(server, &said.concat()).pop().unwrap()
    };

    // A byte between two of them is worth nothing.
    for _ in 0..CHANGES_MAX {
        assert_eq!(change(&mut server, &mut client), Ok(Opened::Nothing));
    }
    opened(&mut server, &sealed(&mut client, &text(CHANGE_BYTES as usize)));
    assert_eq!(change(&mut server, &mut client), Ok(Opened::Nothing));
    assert_eq!(change(&mut server, &mut client), Err(Fault::Changes));
}
