//! Links and contacts in a text, also those that are written around.
//!
//! The text is read with the letters of [`crate::fold`] and the signs that addresses need; regular
//! expressions (linear in the text) look at it only if it has something that an address needs.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use proto::control::Action;
use proto::limits::TEXT_BYTES_MAX;
use regex::Regex;

use crate::fold::{self, Folded, Part};

/// Digits of a Chinese mobile number, which begins with 13 to 19.
const MOBILE_DIGITS: usize = 11;
/// Digits of an international number behind its plus (ITU-T E.164 allows 15).
const WORLD_DIGITS: std::ops::RangeInclusive<usize> = 8..=15;
/// Fewer different digits are a cheer (`16666666666`), no number.
const DIFFERENT_MIN: usize = 4;
/// Letters of the shortest number in words: eight words of three letters.
const LETTERS_SPELLED: usize = 24;
/// Digits in the name of an account, so that it is told from a word.
const ACCOUNT_DIGITS: usize = 2;
/// Letters, digits and dashes of the shortest name of an account.
const ACCOUNT_LETTERS: usize = 4;
/// Digits of a number in groups of 3, 3 and 4.
const GROUPED_DIGITS: usize = 10;
/// Signs or spaces between two digits of one number.
const BETWEEN_MAX: usize = 2;

/// What a text leads to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Lead {
    /// A site, by its host in lower case (`example.com`); empty where none can be told.
    Link(String),
    /// A person: an e-mail address, a telephone number, an account of a messenger.
    Contact,
}

/// The latest action about anything that `text` leads to; `folded` is that text.
pub fn find(text: &str, folded: &Folded, action: impl Fn(&Lead) -> Action) -> Action {
    if !may_lead(folded) {
        return Action::Allow;
    }
    let text = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
    let read = read(text);
    let signs = Signs::new(&read);
    if signs.is_empty() {
        return Action::Allow;
    }
    let contact = is_contact(&read, signs).then_some(Lead::Contact);
    let leads = links(&read, signs).map(Lead::Link).chain(contact);
    leads.map(|it| action(&it)).max().unwrap_or_default()
}

/// Whether `host` is one of `allowed`, or below one.
pub fn is_below(host: &str, allowed: &[String]) -> bool {
    allowed.iter().any(|it| {
        host.strip_suffix(it.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

/// Whether a text has anything of what [`Signs`] look for; most have not, and are read no further.
fn may_lead(folded: &Folded) -> bool {
    if folded.has_address_sign() {
        return true;
    }
    let (mut letters, mut digits, mut dot) = (0, 0, 0);
    for glyph in folded.glyphs() {
        dot = match (dot, glyph.letter) {
            (1, 'o') => 2,
            (2, 't') => return true,
            (_, 'd') => 1,
            _ => 0,
        };
        match glyph.letter {
            'a'..='z' => letters += 1,
            '点' => return true,
            it => digits += usize::from(digit(it).is_some()),
        }
    }
    digits >= ACCOUNT_DIGITS || letters >= LETTERS_SPELLED
}

/// `text` in folded letters, with spaces and ASCII signs.
fn read(text: &str) -> String {
    let mut read = String::with_capacity(text.len());
    for character in text.chars() {
        match fold::part(character) {
            Part::Letters(letters) => read.extend(letters),
            Part::Nothing => {}
            Part::Other => read.push(sign(character)),
        }
    }
    read
}

/// What an address takes a sign for.
fn sign(character: char) -> char {
    match fold::narrow(character) {
        it @ '!'..='~' => it,
        it if fold::is_dot(it) => '.',
        _ => ' ',
    }
}

/// What addresses need, as far as a text has it; most texts have nothing of it.
#[derive(Clone, Copy, Debug, Default)]
struct Signs {
    /// A dot, as a sign or a word, with a letter or bracket before it, and a letter or digit behind
    /// it and what may stand between.
    has_dot: bool,
    has_slash: bool,
    has_at: bool,
    has_bracket: bool,
    /// ASCII letters.
    letters: usize,
    /// ASCII digits.
    figures: usize,
    /// Digits in figures, of any script.
    digits: usize,
    /// A name with figures that may be an account's.
    has_account: bool,
}

impl Signs {
    fn new(read: &str) -> Self {
        let mut signs = Self::default();
        let (mut before, mut is_dotted) = (' ', false);
        let mut name = Name::default();
        for character in read.chars() {
            signs.has_account |= name.take(character);
            match character {
                'a'..='z' => {
                    signs.letters += 1;
                    signs.has_dot |= is_dotted;
                }
                '0'..='9' => {
                    signs.figures += 1;
                    signs.digits += 1;
                    signs.has_dot |= is_dotted;
                }
                '.' | '点' => is_dotted = before.is_ascii() && before != ' ',
                ' ' | '-' => {}
                '/' => signs.has_slash = true,
                '@' => signs.has_at = true,
                '[' | ']' | '(' | ')' | '{' | '}' | '<' | '>' => signs.has_bracket = true,
                _ => {
                    signs.digits += usize::from(digit(character).is_some());
                    is_dotted = false;
                }
            }
            if character != ' ' {
                before = character;
            }
        }
        signs.has_account |= name.is_account();
        signs.has_dot |= signs.letters > 0 && read.contains("dot");
        signs
    }

    /// Whether a telephone number may be spelled.
    const fn spell_numbers(self) -> bool {
        self.digits >= *WORLD_DIGITS.start() || self.letters >= LETTERS_SPELLED
    }

    const fn is_empty(self) -> bool {
        !(self.has_dot || self.has_slash || self.has_account || self.spell_numbers())
    }
}

/// A run of what names of accounts are made of.
#[derive(Clone, Copy, Debug, Default)]
struct Name {
    length: usize,
    figures: usize,
}

impl Name {
    /// Takes what comes next; says whether a name that may be an account's is complete before it.
    fn take(&mut self, character: char) -> bool {
        match character {
            '0'..='9' => self.figures += 1,
            'a'..='z' | '_' | '-' => {}
            _ => {
                let is_account = self.is_account();
                *self = Self::default();
                return is_account;
            }
        }
        self.length += 1;
        false
    }

    const fn is_account(self) -> bool {
        self.length >= ACCOUNT_LETTERS && self.figures >= ACCOUNT_DIGITS
    }
}

macro_rules! pattern {
    ($name:ident = $($part:expr),+) => {
        static $name: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(concat!($($part),+)).expect("the pattern is tested")
        });
    };
}

/// Endings that no word of a sentence is.
macro_rules! endings {
    () => {
        "com|net|org|cn|cc|tv|io|xyz|top|vip|club|shop|site|online|info|biz|ru|uk|jp|kr|de|fr|hk|tw\
         |eu|app|dev|gg|ly|icu|ltd|xin|wang|ink|fun|pro|mobi|asia|tk|ml|ga|cf|pw|ws|la|sh|ai|br|ca"
    };
}

pattern!(SCHEME = r"(?-u:\b)[a-z][a-z0-9+-]{1,15}\s?:\s?/\s?/\s?([a-z0-9.-]*)");
pattern!(WWW = r"(?-u:\b)www\s?\.\s?([a-z0-9-]+(?:\.[a-z0-9-]+)*)");
pattern!(
    HOST = r"([a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:",
    endings!(),
    r"))(?:[^a-z0-9.-]|\.?$|\.[^a-z0-9])"
);
// Endings that are words too lead somewhere only with a path behind them.
pattern!(
    PATH = r"([a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:me|so|is|it|in|to|us|my|at|be|no|am|do|co|link|live|now|win|world|id|st|im|page|us))/[a-z0-9]"
);
macro_rules! dot_around {
    () => {
        r"(?:\s{0,2}[\[({<]\s?(?:\.|点|dot)\s?[\])}>]\s{0,2}|\s{0,2}点\s{0,2}|\s+dot\s+|\s+\.\s*|\s*\.\s+)"
    };
}

pattern!(AROUND = r"([a-z0-9-]{2,})", dot_around!(), r"(com|net|org|cn|cc)(?-u:\b)");
// Endings that are words too: `20点vip专场` is a time.
pattern!(AROUND_WORD = r"([a-z0-9-]*[a-z][a-z0-9-]*)", dot_around!(), r"(vip|top|xyz)(?-u:\b)");
pattern!(NUMBERS = r"(?-u:\b)([0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3})(?-u:\b)");
pattern!(
    MAIL = r"[a-z0-9._+-]+\s?(?:@|[\[({]\s?at\s?[\])}])\s?[a-z0-9-]+(?:\s?(?:\.|[\[({]\s?dot\s?[\])}]|点)\s?[a-z0-9-]+)*\s?(?:\.|[\[({]\s?dot\s?[\])}]|点)\s?[a-z]{2,}"
);
macro_rules! between {
    () => {
        r"(?:号|群|是|加|我|的|id|no|\s|[:=.~-]){0,5}"
    };
}

pattern!(
    MESSENGER = r"(?:微信|薇信|威信|维信|徽信|加微|加薇|加v|v信|扣扣|企鹅号|(?-u:\b)(?:weixin|wechat|vx|wx|qq|telegram|whatsapp|kakao|zalo))",
    between!(),
    r"([a-z0-9_-]{5,20})"
);
// Names that are words too say that a name follows.
pattern!(
    NETWORK = r"(?-u:\b)(?:line|ig|tg|insta|snap|discord)\s?(?:id|号|:|=|@)[\s:=@]{0,3}([a-z0-9_-]{4,20})"
);
pattern!(GROUPED = r"(?:^|[^0-9])\(?[0-9]{3}\)?[-. ]{1,2}[0-9]{3}[-. ][0-9]{4}(?:[^0-9]|$)");

fn links(read: &str, signs: Signs) -> impl Iterator<Item = String> {
    let captured = |pattern: &'static LazyLock<Regex>| {
        pattern.captures_iter(read).filter_map(|it| Some(it.get(1)?.as_str().to_owned()))
    };
    let schemes = [&SCHEME].into_iter().filter(move |_| signs.has_slash);
    let dotted = [&WWW, &HOST, &PATH, &NUMBERS].into_iter().filter(move |_| signs.has_dot);
    let around = [&AROUND, &AROUND_WORD].into_iter().filter(move |_| signs.has_dot);
    let around = around.flat_map(|pattern| pattern.captures_iter(read));
    let around =
        around.filter_map(|it| Some(format!("{}.{}", it.get(1)?.as_str(), it.get(2)?.as_str())));
    schemes.chain(dotted).flat_map(captured).chain(around)
}

fn is_contact(read: &str, signs: Signs) -> bool {
    let is_account = |it: regex::Captures<'_>| it.get(1).is_some_and(|id| is_account(id.as_str()));
    signs.has_account
        && [&MESSENGER, &NETWORK].iter().any(|it| it.captures_iter(read).any(is_account))
        || (signs.has_at || signs.has_bracket) && signs.has_dot && MAIL.is_match(read)
        || signs.figures >= GROUPED_DIGITS && GROUPED.is_match(read)
        || signs.spell_numbers() && has_number(read)
}

/// Whether this names an account: digits among letters, or a number that is no cheer.
fn is_account(id: &str) -> bool {
    let digits = id.bytes().filter(u8::is_ascii_digit);
    if id.bytes().any(|it| it.is_ascii_lowercase()) {
        digits.count() >= ACCOUNT_DIGITS
    } else {
        different(digits) >= DIFFERENT_MIN
    }
}

/// How many different digits there are.
fn different(digits: impl Iterator<Item = u8>) -> usize {
    digits.collect::<BTreeSet<u8>>().len()
}

/// Whether digits, in figures or words, make a telephone number.
fn has_number(read: &str) -> bool {
    let mut number = Number::default();
    let mut rest = read;
    while let Some(character) = rest.chars().next() {
        let (digit, length) = match (digit(character), spelled(rest)) {
            (Some(digit), _) => (Some(digit), character.len_utf8()),
            (None, Some((word, digit))) => (Some(digit), word.len()),
            (None, None) => (None, character.len_utf8()),
        };
        rest = &rest[length..];
        if number.take(character, digit) {
            return true;
        }
    }
    number.is_complete()
}

/// The digit that a text begins with in words.
fn spelled(text: &str) -> Option<(&'static str, char)> {
    let words: &[(&str, char)] = match text.as_bytes().first()? {
        b'z' => &[("zero", '0')],
        b'o' => &[("oh ", '0'), ("one", '1')],
        b't' => &[("two", '2'), ("three", '3')],
        b'f' => &[("four", '4'), ("five", '5')],
        b's' => &[("six", '6'), ("seven", '7')],
        b'e' => &[("eight", '8')],
        b'n' => &[("nine", '9')],
        _ => return None,
    };
    words.iter().find(|it| text.starts_with(it.0)).copied()
}

/// The digit that a character stands for when a number is read out.
const fn digit(character: char) -> Option<char> {
    Some(match character {
        '0'..='9' => character,
        '〇' | '零' | '洞' => '0',
        '一' | '壹' | '幺' => '1',
        '二' | '贰' | '两' => '2',
        '三' | '叁' => '3',
        '四' | '肆' => '4',
        '五' | '伍' => '5',
        '六' | '陆' => '6',
        '七' | '柒' | '拐' => '7',
        '八' | '捌' => '8',
        '九' | '玖' | '勾' => '9',
        _ => return None,
    })
}

/// Digits that may belong together.
#[derive(Debug, Default)]
struct Number {
    digits: String,
    between: usize,
    has_plus: bool,
}

impl Number {
    /// Takes what comes next; says whether a number is complete before it.
    fn take(&mut self, character: char, digit: Option<char>) -> bool {
        match digit {
            Some(digit) => {
                self.digits.push(digit);
                self.between = 0;
                false
            }
            None if !character.is_alphanumeric() && self.between < BETWEEN_MAX => {
                if self.digits.is_empty() {
                    self.has_plus = character == '+';
                } else {
                    self.between += 1;
                }
                false
            }
            None => {
                let is_complete = self.is_complete();
                *self = Self::default();
                is_complete
            }
        }
    }

    fn is_complete(&self) -> bool {
        if different(self.digits.bytes()) < DIFFERENT_MIN {
            return false;
        }
        if self.has_plus && WORLD_DIGITS.contains(&self.digits.len()) {
            return true;
        }
        let national = match self.digits.len() {
            MOBILE_DIGITS => self.digits.as_str(),
            13 => self.digits.strip_prefix("86").unwrap_or_default(),
            15 => self.digits.strip_prefix("0086").unwrap_or_default(),
            _ => return false,
        };
        matches!(national.as_bytes(), [b'1', b'3'..=b'9', ..])
    }
}

#[cfg(test)]
mod tests;
