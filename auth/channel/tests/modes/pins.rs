//! A client that knows a server's key believes no other, whoever signed for it.

use channel::{NoPin, Pin, Pins, Unpinned};
use proptest::prelude::*;

use crate::site::{Site, shake};

const OTHER: Pin = Pin([7; 32]);

#[tokio::test]
async fn the_current_key_and_the_next_one_are_believed_in_both_modes() {
    let site = Site::new();
    for certs in [&site.tls, &site.national] {
        let own = Pin::of_pem(&certs.chain_pem).unwrap();
        for pins in [
            Pins { current: own, next: None },
            Pins { current: own, next: Some(OTHER) },
            Pins { current: OTHER, next: Some(own) },
        ] {
            let client = certs.client().unwrap().pinned(pins);

            let (client, server) = shake(&client, &certs.server(&[]).unwrap()).await;

            assert!(client.is_ok() && server.is_ok(), "{pins:?}");
        }
    }
}

#[tokio::test]
async fn another_key_of_the_same_authority_is_refused_with_its_own_error() {
    let site = Site::new();
    for certs in [&site.tls, &site.national] {
        for next in [None, Some(Pin([8; 32]))] {
            let client = certs.client().unwrap().pinned(Pins { current: OTHER, next });

            let (client, server) = shake(&client, &certs.server(&[]).unwrap()).await;

            let found = Pin::of_pem(&certs.chain_pem).unwrap();
            assert_eq!(Unpinned::of(&client.unwrap_err()), Some(Unpinned { found }));
            assert!(server.is_err());
        }
    }
}

#[tokio::test]
async fn the_right_key_of_an_unknown_authority_is_refused_as_without_pins() {
    let site = Site::new();
    let stranger = Site::new();
    let current = Pin::of_pem(&site.tls.chain_pem).unwrap();
    let client = stranger.tls.client().unwrap().pinned(Pins { current, next: None });

    let (client, _) = shake(&client, &site.tls.server(&[]).unwrap()).await;

    let error = client.unwrap_err();
    assert_eq!(Unpinned::of(&error), None);
    let error = error.downcast::<rustls::Error>().unwrap();
    assert!(matches!(error, rustls::Error::InvalidCertificate(_)), "{error}");
}

#[tokio::test]
async fn a_session_from_before_the_pins_is_not_resumed() {
    let site = Site::new();
    let server = site.tls.server(&[]).unwrap();
    let client = site.tls.client().unwrap();
    let (first, second) = shake(&client, &server).await;
    first.unwrap();
    second.unwrap();

    let pinned = client.pinned(Pins { current: OTHER, next: None });
    let (refused, _) = shake(&pinned, &server).await;

    assert!(Unpinned::of(&refused.unwrap_err()).is_some());
}

#[test]
fn a_pin_is_read_as_it_is_written() {
    let pin = Pin::of_pem(&Site::new().tls.chain_pem).unwrap();

    assert_eq!(pin.to_string().parse(), Ok(pin));
    for text in ["", "sha256/", "sha256/AAAA", "sha1/AAAA", "AAAA"] {
        assert_eq!(text.parse::<Pin>(), Err(NoPin), "{text}");
    }
    let long = format!("sha256/{}", "A".repeat(1000));
    assert_eq!(long.parse::<Pin>(), Err(NoPin));
}

proptest! {
    #[test]
    fn a_text_is_the_pin_that_it_is_written_as_or_none(
        prefix in prop::sample::select(&["", "sha256/", "sha256", "SHA256/", "sha256//"][..]),
        // Near the 44 characters that a pin has, and anything at all.
        rest in prop_oneof!["[A-Za-z0-9+/]{40,46}={0,3}", "\\PC*", any::<String>()],
    ) {
        let text = format!("{prefix}{rest}");

        match text.parse::<Pin>() {
            Ok(pin) => prop_assert_eq!(pin.to_string(), text),
            Err(NoPin) => prop_assert_eq!(
                NoPin.to_string(),
                "a pin is written sha256/ and 32 bytes in base64"
            ),
        }
    }

    #[test]
    fn every_key_has_a_pin(bytes in any::<[u8; 32]>()) {
        prop_assert_eq!(Pin(bytes).to_string().parse(), Ok(Pin(bytes)));
    }
}
