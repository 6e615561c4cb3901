//! Facts as they lie on `control`, and what else may lie there: another process's bytes, or a
//! person's, are a fact or are refused.

use proptest::prelude::*;
use proto::control::Fact;
use proto::decode::DecodeError;
use proto::limits::FACT_BYTES_MAX;

/// One of each kind.
const FACTS: [&str; 19] = [
    r#"{"fact":"epoch","epoch":2975000,"interval_s":600,"alg":1,"random":"a0a1","kids":[1,0]}"#,
    r#"{"fact":"room","app":1,"room":"r-1","version":7,"open":true,"settings":{"slow_mode_ms":5}}"#,
    r#"{"fact":"mute","app":1,"room":"r-1","viewer":"Zoë","until":1800000000000}"#,
    r#"{"fact":"ban","app":1,"room":"r-1","viewer":"u","until":0}"#,
    r#"{"fact":"kick","app":1,"room":"r-1","viewer":"u","not_before":1800000000000}"#,
    r#"{"fact":"close","node":3,"session":18446744073709551615,"code":3006}"#,
    r#"{"fact":"keep","app":1,"room":"r-1","keep_permille":500}"#,
    r#"{"fact":"heat","app":1,"room":"r-1","heat":"hot","gen":2,"slot":40}"#,
    r#"{"fact":"move","node":3,"window_ms":60000}"#,
    r#"{"fact":"lease","topic":"accepted","partition":4,"node":3,"term":9,"expires":1}"#,
    r#"{"fact":"revoked","kid":1,"from_epoch":0,"to_epoch":4294967295}"#,
    r#"{"fact":"policy","app":1,"room":"r-1","version":2,"policy":{"entry":"guest"}}"#,
    r#"{"fact":"sdk","version":2,"rules":[{"sdk":"rust","below":"1.4.0","act":"warn"}]}"#,
    r#"{"fact":"words","app":1,"room":"r-1","version":2}"#,
    r#"{"fact":"exclude","app":1,"room":"r-1","what":{"device":"d"},"until":0}"#,
    r#"{"fact":"exclude","app":1,"room":"r-1","what":{"range":"2001:db8::/32"},"until":5}"#,
    r#"{"fact":"person","app":1,"room":"r-1","viewer":"u","standing":{"role":"vip","listed":true}}"#,
    r#"{"fact":"attribute","app":1,"room":"r-1","attribute":{"name":"n","version":3,"value":-7}}"#,
    r#"{"fact":"sealed","app":1,"room":"r-1","gen":3,"ended":true}"#,
];

/// Decodes; what is accepted must survive another turn unchanged.
fn attack(bytes: &[u8]) -> Result<Fact, DecodeError> {
    let fact = Fact::decode(bytes)?;
    assert_eq!(Fact::decode(&fact.encode()).as_ref(), Ok(&fact));
    assert!(!fact.key().is_empty());
    Ok(fact)
}

#[test]
fn each_kind_is_read_as_it_is_written() {
    for text in FACTS {
        assert!(attack(text.as_bytes()).is_ok(), "{text}");
    }
}

#[test]
fn every_prefix_is_refused() {
    for text in FACTS {
        for length in 0..text.len() {
            let refused = attack(&text.as_bytes()[..length]);

            assert_eq!(refused, Err(DecodeError::Malformed), "{length} bytes of {text}");
        }
    }
}

#[test]
fn what_is_outside_its_grammar_or_range_is_refused() {
    for (good, bad) in [
        ("\"r-1\"", "\"../r\""),
        ("\"r-1\"", "\"\""),
        ("\"r-1\"", "7"),
        ("\"app\":1", "\"app\":-1"),
        ("\"app\":1", "\"app\":4294967296"),
        ("\"app\":1", "\"app\":1.5"),
        ("\"fact\":", "\"Fact\":"),
        ("\"fact\":\"", "\"fact\":\"un"),
        ("{", "["),
        ("}", "}}"),
    ] {
        for text in FACTS.iter().filter(|it| it.contains(good)) {
            let spoiled = text.replacen(good, bad, 1);

            assert_eq!(attack(spoiled.as_bytes()), Err(DecodeError::Malformed), "{spoiled}");
        }
    }
}

#[test]
fn a_fact_that_is_too_long_is_refused_before_it_is_read() {
    let fact = FACTS[0].to_owned();
    let padded = |bytes: usize| fact.clone() + &" ".repeat(bytes - fact.len());

    assert!(attack(padded(FACT_BYTES_MAX).as_bytes()).is_ok());
    let too_large = DecodeError::TooLarge { bytes: FACT_BYTES_MAX + 1, max: FACT_BYTES_MAX };
    assert_eq!(attack(padded(FACT_BYTES_MAX + 1).as_bytes()), Err(too_large));
}

#[test]
fn what_is_nested_without_end_is_refused() {
    for open in ["[", "{\"fact\":", "{\"a\":["] {
        let text = open.repeat(FACT_BYTES_MAX / open.len());

        assert_eq!(attack(text.as_bytes()), Err(DecodeError::Malformed), "{open}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn arbitrary_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert_eq!(attack(&bytes), Err(DecodeError::Malformed));
    }

    #[test]
    fn changed_bytes_are_a_fact_or_refused(
        text in prop::sample::select(FACTS.as_slice()),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut spoiled = text.as_bytes().to_vec();
        for (at, byte) in changes {
            spoiled[at.index(text.len())] = byte;
        }

        let decoded = attack(&spoiled);

        prop_assert!(matches!(decoded, Ok(_) | Err(DecodeError::Malformed)), "{:?}", decoded);
    }
}
