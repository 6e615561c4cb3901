//! Bytes between the start codes of H.264 (ITU-T H.264, clause 7.4.1): whoever cuts a stream looks for
//! `00 00 01`, so no unit may contain it.

/// Inserted where two zeros would be followed by a byte up to this one.
const GUARD: u8 = 3;

/// A unit's bytes, with a guard wherever they would look like a start code, or like a guard.
#[must_use]
pub fn escape(raw: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(raw.len() + raw.len() / 64);
    let mut zeros = 0;
    for &byte in raw {
        if zeros == 2 && byte <= GUARD {
            bytes.push(GUARD);
            zeros = 0;
        }
        zeros = if byte == 0 { zeros + 1 } else { 0 };
        bytes.push(byte);
    }
    bytes
}

/// Undoes [`escape`]; takes anything.
#[must_use]
pub fn unescape(bytes: &[u8]) -> Vec<u8> {
    let mut raw = Vec::with_capacity(bytes.len());
    let mut zeros = 0;
    for &byte in bytes {
        if zeros >= 2 && byte == GUARD {
            zeros = 0;
            continue;
        }
        zeros = if byte == 0 { zeros + 1 } else { 0 };
        raw.push(byte);
    }
    raw
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(raw: &[u8], expected: &[u8]) {
        assert_eq!(escape(raw), expected);
        assert_eq!(unescape(expected), raw);
    }

    #[test]
    fn a_guard_stands_where_a_start_code_would() {
        check(&[0, 0, 1], &[0, 0, 3, 1]);
        check(&[0, 0, 3], &[0, 0, 3, 3]);
        check(&[0, 0, 4], &[0, 0, 4]);
        check(&[0, 0, 0, 0, 0, 0x80], &[0, 0, 3, 0, 0, 3, 0, 0x80]);
        check(&[0, 1, 0, 0x80], &[0, 1, 0, 0x80]);
    }

    /// Bytes of which most are small, as those that must be guarded are.
    fn raw() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![3 => 0_u8..=4, 1 => any::<u8>()];
        proptest::collection::vec(byte, 0..300)
    }

    proptest! {
        #[test]
        fn any_bytes_come_back_and_never_look_like_a_start_code(raw in raw()) {
            let bytes = escape(&raw);

            prop_assert!(!bytes.windows(3).any(|it| it[..2] == [0, 0] && it[2] < GUARD));
            prop_assert_eq!(unescape(&bytes), raw);
        }
    }
}
