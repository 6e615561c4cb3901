//! An ID3v2.4 tag with one private frame, which is how timed metadata travels in HLS.

/// A tag with one `PRIV` frame (ID3v2.4.0 structure, section 3; frames, section 4.27).
pub(super) fn private(owner: &str, data: &[u8]) -> Vec<u8> {
    let body = owner.len() + 1 + data.len();
    let mut tag = Vec::with_capacity(20 + body);
    tag.extend_from_slice(b"ID3\x04\0\0");
    tag.extend_from_slice(&sevens(body + 10));
    tag.extend_from_slice(b"PRIV");
    tag.extend_from_slice(&sevens(body));
    tag.extend_from_slice(&[0, 0]);
    tag.extend_from_slice(owner.as_bytes());
    tag.push(0);
    tag.extend_from_slice(data);
    tag
}

/// A length in four bytes of seven bits each; segments are far shorter than 256 MiB.
fn sevens(length: usize) -> [u8; 4] {
    [21, 14, 7, 0].map(|shift| u8::try_from(length >> shift & 0x7F).expect("seven bits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_seven_bits_a_byte() {
        let tag = private("o", &[7; 300]);

        assert_eq!(tag[6..10], [0, 0, 2, 56], "302 and the frame's own 10");
        assert_eq!(tag[14..18], [0, 0, 2, 46]);
        assert_eq!(tag.len(), 10 + 10 + 302);
        assert_eq!(tag[20..22], *b"o\0");
    }
}
