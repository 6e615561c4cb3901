//! Whether a text is fit to be shown: no controls, no overrides, no towers of marks.
//!
//! Works on the first [`TEXT_BYTES_MAX`] bytes, in NFC, in linear time: canonically equal texts
//! get the same answer, and a hostile one costs no more than a long one. The text itself is never
//! changed; what the sender wrote is what is shown.

use std::borrow::Cow;

use proto::limits::TEXT_BYTES_MAX;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use unicode_segmentation::UnicodeSegmentation;

/// Combining marks on one base: Vietnamese needs 2, a Tibetan or vowelled Hebrew letter 4.
pub const MARKS_MAX: usize = 4;
/// Joiners and other characters without width behind one base; scripts and emoji use 1 or 2.
pub const JOINERS_MAX: usize = 2;
/// Tag characters behind one base: the flags of England, Scotland and Wales have 6.
pub const TAGS_MAX: usize = 6;
/// Characters of one grapheme: the longest emoji in use, two people and a heart with skin tones,
/// has 10. Without this bound one grapheme could be as long as the text.
pub const CLUSTER_CHARS_MAX: usize = 16;

/// Why a text is not fit to be shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Misshapen {
    /// Nothing in it can be seen.
    #[error("the text shows nothing")]
    Blank,
    /// A control, a line break, a bidi override or isolate, or no character at all.
    #[error("the text holds the character {0:?}")]
    Character(char),
    /// More than [`MARKS_MAX`] marks on one base.
    #[error("too many marks on one letter")]
    Marks,
    /// More than [`JOINERS_MAX`] joiners or [`TAGS_MAX`] tags behind one base.
    #[error("too many joiners in a row")]
    Joiners,
    /// More than [`CLUSTER_CHARS_MAX`] characters in one grapheme.
    #[error("a grapheme is too long")]
    Cluster,
}

/// The graphemes of `text`; of a longer text, those of its first [`TEXT_BYTES_MAX`] bytes.
pub fn graphemes(text: &str) -> Result<usize, Misshapen> {
    let head = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
    if head.chars().all(is_plain) && head.bytes().any(|it| it != b' ') {
        return Ok(head.chars().count());
    }
    let normal: Cow<'_, str> = if unicode_normalization::is_nfc(head) {
        head.into()
    } else {
        head.nfc().collect::<String>().into()
    };
    check_characters(&normal)?;
    let mut graphemes = 0;
    for grapheme in normal.graphemes(true) {
        if grapheme.chars().nth(CLUSTER_CHARS_MAX).is_some() {
            return Err(Misshapen::Cluster);
        }
        graphemes += 1;
    }
    Ok(graphemes)
}

/// Characters that are shown, are a grapheme each beside each other, and are in NFC: printable
/// ASCII, and what East Asian texts mostly consist of.
const fn is_plain(character: char) -> bool {
    matches!(character,
        ' '..='~' | '\u{3001}'..='\u{3029}' | '\u{3041}'..='\u{3096}' | '\u{30A1}'..='\u{30FF}'
        | '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7A3}' | '\u{FF01}'..='\u{FF60}')
}

/// What a character does to the line it stands in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Class {
    /// Something to see.
    Visible,
    /// Takes room and shows nothing.
    Space,
    /// Sits on the base before it.
    Mark,
    /// Takes no room.
    Joiner,
    /// Spells the region of a flag.
    Tag,
    /// Not allowed.
    Banned,
}

fn check_characters(text: &str) -> Result<(), Misshapen> {
    let (mut marks, mut joiners, mut tags) = (0, 0, 0);
    let mut blank = true;
    for character in text.chars() {
        match classify(character) {
            Class::Visible => {
                blank = false;
                (marks, joiners, tags) = (0, 0, 0);
            }
            Class::Space => (marks, joiners, tags) = (0, 0, 0),
            Class::Mark => marks += 1,
            Class::Joiner => joiners += 1,
            Class::Tag => tags += 1,
            Class::Banned => return Err(Misshapen::Character(character)),
        }
        if marks > MARKS_MAX {
            return Err(Misshapen::Marks);
        }
        if joiners > JOINERS_MAX || tags > TAGS_MAX {
            return Err(Misshapen::Joiners);
        }
    }
    if blank { Err(Misshapen::Blank) } else { Ok(()) }
}

fn classify(character: char) -> Class {
    match character {
        ' '..='~' => {
            if character == ' ' {
                Class::Space
            } else {
                Class::Visible
            }
        }
        // Line and paragraph separators, overrides, isolates, deprecated formats, annotations,
        // musical controls, language tags, and what is no character.
        '\u{2028}'
        | '\u{2029}'
        | '\u{202A}'..='\u{202E}'
        | '\u{2066}'..='\u{206F}'
        | '\u{FFF9}'..='\u{FFFB}'
        | '\u{1D173}'..='\u{1D17A}'
        | '\u{FDD0}'..='\u{FDEF}'
        | '\u{E0001}' => Class::Banned,
        _ if character.is_control() || u32::from(character) & 0xFFFE == 0xFFFE => Class::Banned,
        '\u{00AD}'
        | '\u{061C}'
        | '\u{180E}'
        | '\u{200B}'..='\u{200F}'
        | '\u{2060}'..='\u{2065}'
        | '\u{FEFF}' => Class::Joiner,
        '\u{E0020}'..='\u{E007F}' => Class::Tag,
        // Hangul fillers and the empty braille cell: letters that show nothing.
        '\u{115F}' | '\u{1160}' | '\u{2800}' | '\u{3164}' | '\u{FFA0}' => Class::Space,
        _ if character.is_whitespace() => Class::Space,
        _ if is_combining_mark(character) => Class::Mark,
        _ => Class::Visible,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: Result<usize, Misshapen>) {
        assert_eq!(graphemes(text), expected, "{text:?}");
    }

    #[test]
    fn ordinary_texts_of_many_scripts_pass() {
        check("hello, world", Ok(12));
        check("前方高能", Ok(4));
        check("Tiếng Việt", Ok(10));
        check("Tie\u{302}\u{301}ng", Ok(5));
        check("नमस्ते", Ok(3));
        check("שָׁלוֹם", Ok(4));
        check("می\u{200C}خواهم", Ok(7));
        check("👩🏻\u{200D}❤\u{FE0F}\u{200D}💋\u{200D}👩🏿", Ok(1));
        check("🏴\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}", Ok(1));
        check("1\u{FE0F}\u{20E3}", Ok(1));
        check("한국어", Ok(3));
    }

    #[test]
    fn controls_breaks_and_overrides_are_refused() {
        for character in ['\0', '\n', '\t', '\u{7F}', '\u{85}', '\u{2028}', '\u{202A}', '\u{202E}']
        {
            check(&format!("a{character}b"), Err(Misshapen::Character(character)));
        }
        for character in ['\u{2066}', '\u{2069}', '\u{FFF9}', '\u{FFFE}', '\u{10FFFF}'] {
            check(&format!("a{character}b"), Err(Misshapen::Character(character)));
        }
    }

    #[test]
    fn a_text_without_anything_to_see_is_blank() {
        for blank in ["", " ", "\u{3000}", "\u{200B}", "\u{FEFF} \u{200D}", "\u{3164}", "\u{301}"] {
            check(blank, Err(Misshapen::Blank));
        }
    }

    #[test]
    fn four_marks_pass_and_five_do_not() {
        check("q\u{323}\u{323}\u{323}\u{323}", Ok(1));
        check("q\u{323}\u{323}\u{323}\u{323}\u{323}", Err(Misshapen::Marks));
        check(&format!("q{}", "\u{301}".repeat(10_000)), Err(Misshapen::Marks));
        check(&"\u{301}".repeat(10_000), Err(Misshapen::Marks));
    }

    #[test]
    fn floods_of_joiners_are_refused() {
        check("a\u{200D}\u{200D}b", Ok(2));
        check("a\u{200D}\u{200D}\u{200D}b", Err(Misshapen::Joiners));
        check(&"👩\u{200D}".repeat(400), Err(Misshapen::Cluster));
        check(&"\u{1100}".repeat(400), Err(Misshapen::Cluster));
        check(&format!("🏴{}", "\u{E0067}".repeat(7)), Err(Misshapen::Joiners));
    }

    #[test]
    fn only_the_first_bytes_of_a_long_text_are_read() {
        check(&"x".repeat(1_000_000), Ok(TEXT_BYTES_MAX));
        check(&format!("{}\u{202E}", "x".repeat(TEXT_BYTES_MAX)), Ok(TEXT_BYTES_MAX));
    }

    #[test]
    fn plain_characters_are_what_they_are_taken_for() {
        let plain: Vec<char> = ('\0'..=char::MAX).filter(|it| is_plain(*it)).collect();
        let text: String = plain.iter().collect();

        assert!(plain.iter().all(|it| matches!(classify(*it), Class::Visible | Class::Space)));
        assert!(unicode_normalization::is_nfc(&text));
        assert_eq!(text.graphemes(true).count(), plain.len());
    }

    proptest! {
        #[test]
        fn any_text_gets_an_answer(text in "\\PC{0,300}|(\\p{M}|\u{200D}|\\p{Cf}|a| ){0,300}") {
            let counted = graphemes(&text);

            if let Ok(count) = counted {
                prop_assert!(count > 0 && count <= text.len());
            }
        }

        #[test]
        fn canonically_equal_texts_get_the_same_answer(text in "(\\p{L}|\\p{M}|\\PC){1,60}") {
            let (composed, taken_apart) =
                (text.nfc().collect::<String>(), text.nfd().collect::<String>());
            prop_assume!(taken_apart.len() <= TEXT_BYTES_MAX);

            prop_assert_eq!(graphemes(&composed), graphemes(&taken_apart));
        }
    }
}
