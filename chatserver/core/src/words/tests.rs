//! Listed words: found, protected, masked, refused.

use proptest::prelude::*;

use super::*;

fn list(words: &[(&str, Action)]) -> Words {
    let word = |it: &(&str, Action)| Word { text: it.0.to_owned(), action: it.1 };
    Words::compile(&words.iter().map(word).collect::<Vec<_>>()).unwrap()
}

fn found(text: &str, words: &[(&str, Action)]) -> Vec<String> {
    let list = list(words);
    let mut scanner = Scanner::default();
    let hits = scanner.scan(text, &[&list]);
    hits.iter().map(|it| text[it.from.into()..it.to.into()].to_owned()).collect()
}

#[test]
fn a_word_is_found_in_disguise_and_told_as_it_was_sent() {
    let words = [("fuck", Action::Refuse), ("操你妈", Action::Refuse)];

    assert_eq!(found("oh Ｆuсking", &words), ["Ｆuсk"]);
    assert_eq!(found("f.u.c.k it", &words), ["f.u.c.k"]);
    assert_eq!(found("fuuuuck", &words), ["fuuuuck"]);
    assert_eq!(found("操 你🤬媽", &words), ["操 你🤬媽"]);
}

#[test]
fn an_allowed_word_protects_what_lies_within_it() {
    let words = [("cunt", Action::Refuse), ("Scunthorpe", Action::Allow)];

    assert_eq!(found("Scunthorpe United", &words), [""; 0]);
    assert_eq!(found("Scunthorpe cunt", &words), ["cunt"]);
}

#[test]
fn short_words_and_numbers_stand_alone() {
    let words = [("ass", Action::Refuse), ("64", Action::Refuse), ("sb", Action::Refuse)];

    assert_eq!(found("class pass assassin 1640", &words), [""; 0]);
    assert_eq!(found("你sb吗 ass!", &words), ["sb", "ass"]);
}

#[test]
fn a_word_that_spans_spaces_has_a_letter_alone() {
    let words = [("penis", Action::Refuse), ("시발", Action::Refuse)];

    assert_eq!(found("the pen is red", &words), [""; 0]);
    assert_eq!(found("다시 발표", &words), [""; 0]);
    assert_eq!(found("p e n i s", &words), ["p e n i s"]);
}

#[test]
fn part_of_a_letter_is_no_word() {
    assert_eq!(found("が", &[("か", Action::Refuse)]), [""; 0]);
    assert_eq!(found("가", &[("ᄀ", Action::Refuse)]), [""; 0]);
}

#[test]
fn the_later_action_of_two_equal_words_counts() {
    let list = list(&[("Fuck", Action::Refuse), ("ｆｕｃｋ", Action::Mask)]);

    let hits = Scanner::default().scan("fuck", &[&list]).to_vec();

    assert_eq!(hits, [Hit { from: 0, to: 4, action: Action::Refuse }]);
    assert_eq!(list.len(), 1);
}

#[test]
fn a_mask_has_a_star_for_every_grapheme() {
    let list = list(&[("操你妈", Action::Mask)]);
    let text = "滚 操你媽!";

    let hits = Scanner::default().scan(text, &[&list]).to_vec();

    assert_eq!(mask(text, &hits), "滚 ***!");
}

#[test]
fn a_mask_hides_letters_that_hang_on_others() {
    let list = list(&[("妈的", Action::Mask)]);
    let text = "\u{600}妈的";

    let hits = Scanner::default().scan(text, &[&list]).to_vec();

    assert_eq!(mask(text, &hits), "**");
}

#[test]
fn a_word_with_signs_is_listed_as_it_is_meant() {
    let words = [("a$$", Action::Refuse), ("f*ck", Action::Refuse)];

    assert_eq!(found("a bird, an ass", &words), ["ass"]);
    assert_eq!(found("f*ck", &words), ["f*ck"]);
    let bad = Words::compile(&[Word { text: "C++".to_owned(), action: Action::Mask }]);
    assert_eq!(bad.unwrap_err(), BadList::Sign { no: 0, text: "C++".to_owned() });
}

#[test]
fn a_text_of_nothing_but_listed_words_is_refused() {
    let words: Vec<String> = (4..60).map(|it| "a".repeat(it)).collect();
    let words: Vec<(&str, Action)> = words.iter().map(|it| (&**it, Action::Mask)).collect();
    let list = list(&words);

    let hits = Scanner::default().scan(&"a".repeat(2000), &[&list]).to_vec();

    assert_eq!(hits, [Hit { from: 0, to: 2000, action: Action::Refuse }]);
}

#[test]
fn a_bad_list_says_what_is_wrong() {
    let word = |text: &str| Word { text: text.to_owned(), action: Action::Mask };

    let blank = Words::compile(&[word("ok"), word("…!")]).unwrap_err();
    let long = Words::compile(&[word(&"x".repeat(257))]).unwrap_err();

    assert_eq!(blank.to_string(), "word 1, \"…!\", has no letter or digit");
    assert_eq!(long, BadList::TooLong { no: 0 });
    assert!(Words::compile(&[]).unwrap().is_empty());
}

proptest! {
    #[test]
    fn a_listed_word_is_found_in_itself(text in "[a-z\u{4E00}-\u{4E20}가-갏]{1,12}") {
        prop_assert!(!found(&text, &[(&text, Action::Refuse)]).is_empty());
    }

    #[test]
    fn any_text_is_scanned(text in any::<String>(), word in "[a-z]\\PC{0,8}[a-z]") {
        let list = list(&[(&word, Action::Mask)]);

        let hits = Scanner::default().scan(&text, &[&list]).to_vec();

        prop_assert!(mask(&text, &hits).chars().count() <= text.chars().count());
    }
}
