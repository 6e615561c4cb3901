//! What one character folds to; computed once and kept in pages of 256 characters.

use std::sync::OnceLock;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use unicode_security::confusable_detection::skeleton;

const PAGE: usize = 256;
const PAGES_MAX: usize = 0x11_0000 / PAGE;

/// What a character folds to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Entry<'a> {
    /// One letter or digit.
    Letter(char),
    /// Several; a mark never comes first.
    Letters(&'a str),
    /// A mark that tells words apart; it belongs to the letter before it.
    Mark(char),
    /// One half of a flag, as the letter that it is.
    Region(char),
    /// A sign or an emoji.
    Sign,
    /// White space.
    Space,
    /// Takes no room, or is an accent.
    Nothing,
}

/// What `character` folds to.
pub(super) fn of(character: char) -> Entry<'static> {
    static PAGES: [OnceLock<Box<Page>>; PAGES_MAX] = [const { OnceLock::new() }; PAGES_MAX];
    let code = usize::try_from(u32::from(character)).expect("a character fits a usize");
    let page = PAGES[code / PAGE].get_or_init(|| Page::new(code / PAGE));
    match page.entries[code % PAGE] {
        Kept::Letter(it) => Entry::Letter(it),
        Kept::Letters(no) => Entry::Letters(&page.letters[usize::from(no)]),
        Kept::Mark(it) => Entry::Mark(it),
        Kept::Region(it) => Entry::Region(it),
        Kept::Sign => Entry::Sign,
        Kept::Space => Entry::Space,
        Kept::Nothing => Entry::Nothing,
    }
}

/// Whether a folded letter is Han or kana.
pub(super) const fn is_ideographic(letter: char) -> bool {
    matches!(letter,
        '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{4DBF}'
        | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}')
}

#[derive(Clone, Copy, Debug)]
enum Kept {
    Letter(char),
    Letters(u16),
    Mark(char),
    Region(char),
    Sign,
    Space,
    Nothing,
}

struct Page {
    entries: [Kept; PAGE],
    letters: Vec<String>,
}

impl Page {
    fn new(no: usize) -> Box<Self> {
        let mut page = Box::new(Self { entries: [Kept::Nothing; PAGE], letters: Vec::new() });
        for place in 0..PAGE {
            let code = u32::try_from(no * PAGE + place).unwrap_or(u32::MAX);
            if let Some(character) = char::from_u32(code) {
                page.entries[place] = page.keep(character);
            }
        }
        page
    }

    fn keep(&mut self, character: char) -> Kept {
        if let Some(kept) = by_hand(character) {
            return kept;
        }
        let folded = letters(character);
        let mut characters = folded.chars();
        match (characters.next(), characters.next()) {
            (None, _) if is_combining_mark(character) => Kept::Nothing,
            (None, _) if character.is_whitespace() => Kept::Space,
            (None, _) => Kept::Sign,
            (Some(one), None) if is_combining_mark(one) => Kept::Mark(one),
            (Some(one), None) => Kept::Letter(one),
            (Some(_), Some(_)) => {
                let no = u16::try_from(self.letters.len()).expect("a page has 256 characters");
                self.letters.push(folded);
                Kept::Letters(no)
            }
        }
    }
}

/// Characters that Unicode's tables do not fold as a reader does.
fn by_hand(character: char) -> Option<Kept> {
    let letter = |first: char| {
        let no = u8::try_from(u32::from(character) - u32::from(first)).ok()?;
        Some(char::from(b'a' + no))
    };
    Some(match character {
        '\u{1F1E6}'..='\u{1F1FF}' => Kept::Region(letter('\u{1F1E6}')?),
        // Letters in black circles and squares.
        '\u{1F150}'..='\u{1F169}' => Kept::Letter(letter('\u{1F150}')?),
        '\u{1F170}'..='\u{1F189}' => Kept::Letter(letter('\u{1F170}')?),
        // Lunate sigma looks like c; NFKD makes it a sigma.
        '\u{3F2}' | '\u{3F9}' => Kept::Letter('c'),
        // Fillers and the empty braille cell show nothing and take room.
        '\u{115F}' | '\u{1160}' | '\u{2800}' | '\u{3164}' | '\u{FFA0}' => Kept::Space,
        // Soft hyphen, joiners, directions, variation selectors, tags.
        '\u{AD}'
        | '\u{34F}'
        | '\u{61C}'
        | '\u{180B}'..='\u{180F}'
        | '\u{200B}'..='\u{200F}'
        | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}'
        | '\u{FE00}'..='\u{FE0F}'
        | '\u{FEFF}'
        | '\u{E0000}'..='\u{E0FFF}' => Kept::Nothing,
        _ => return None,
    })
}

/// The letters, digits and needed marks of `character`, folded.
fn letters(character: char) -> String {
    let mut folded = String::new();
    for part in character.nfkd().flat_map(char::to_lowercase).nfkd() {
        if is_combining_mark(part) {
            // An accent may go; a vowel sign or the voicing of kana makes another word.
            if !is_accent(part) {
                folded.push(part);
            }
        } else if part.is_alphanumeric() {
            folded.push_str(&reader_sees(part));
        }
    }
    folded
}

/// Marks of no script of their own, but for the voicing of kana.
const fn is_accent(mark: char) -> bool {
    matches!(mark,
        '\u{300}'..='\u{36F}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5BD}'
        | '\u{64B}'..='\u{655}' | '\u{1AB0}'..='\u{1AFF}' | '\u{1DC0}'..='\u{1DFF}'
        | '\u{20D0}'..='\u{20FF}' | '\u{302A}'..='\u{302F}' | '\u{FE20}'..='\u{FE2F}')
}

/// What a reader takes a lower-case letter or a digit for.
fn reader_sees(letter: char) -> String {
    if letter.is_ascii() {
        return letter.to_string();
    }
    if let Some(digit) = digit(letter) {
        return digit.to_string();
    }
    if matches!(letter, '\u{30A1}'..='\u{30F6}') {
        return char::from_u32(u32::from(letter) - 0x60).unwrap_or(letter).to_string();
    }
    if is_ideographic(letter) {
        return fast2s::convert(&letter.to_string());
    }
    match letter {
        'ß' => return "ss".to_owned(),
        'ς' => return "σ".to_owned(),
        _ => {}
    }
    let upper: String = letter.to_uppercase().collect();
    latin(&letter.to_string()).or_else(|| latin(&upper)).unwrap_or_else(|| letter.to_string())
}

/// The ASCII letters that `text` looks like.
fn latin(text: &str) -> Option<String> {
    let like: String = skeleton(text).collect::<String>().to_lowercase();
    // Unicode takes `rn` for the prototype of `m`.
    let like = if like == "rn" { "m".to_owned() } else { like };
    like.bytes().all(|it| it.is_ascii_lowercase()).then_some(like).filter(|it| !it.is_empty())
}

/// The value of a decimal digit of another script (general category Nd, in tens from these on).
fn digit(letter: char) -> Option<char> {
    const ZEROS: [u32; 22] = [
        0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xE50,
        0xED0, 0xF20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0xA8D0, 0xABF0,
    ];
    let code = u32::from(letter);
    let zero = ZEROS.into_iter().find(|zero| (*zero..zero + 10).contains(&code))?;
    char::from_digit(code - zero, 10)
}
