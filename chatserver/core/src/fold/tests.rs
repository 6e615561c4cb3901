//! Folding, character by character and in whole texts.

use proptest::prelude::*;

use super::*;

fn read(text: &str, reading: Reading) -> String {
    let mut folded = Folded::default();
    folded.fold(text, reading);
    folded.glyphs().iter().map(|it| it.letter).collect()
}

fn check(text: &str, expected: &str) {
    assert_eq!(read(text, Reading::Plain), expected, "{text:?}");
}

#[test]
fn case_width_style_and_accents_fold_away() {
    check("FuCK", "fuck");
    check("ｆｕｃｋ", "fuck");
    check("𝓯𝖚𝕔𝘬 ⓕⓤⓒⓚ 🅵🅤🅲🅺 🄵", "fuckfuckfuckf");
    check("f\u{336}ü\u{30A}ć\u{327}k\u{20D2}", "fuck");
    check("Straße ﬁn ①²½", "strassefin1212");
    check("ﾊﾞｶ バカ ばか", "は\u{3099}かは\u{3099}かは\u{3099}か");
    check("٣۴५", "345");
}

#[test]
fn look_alikes_and_variants_fold_together() {
    check("fuсk ѕhіt рorn", "fuckshitporn");
    check("ƒυϲκ", "fuck");
    check("法輪 媽 國", "法轮妈国");
    check("\u{2F08}民", "人民");
}

#[test]
fn spaces_signs_and_what_has_no_width_are_left_out() {
    check("f.u c\u{200B}k\u{AD}!", "fuck");
    check("操🤬你_妈", "操你妈");
    check("🇸🇧 🇫🇺🇨🇰", "fuck");
    check("🇫 🇺\u{200B}🇨 🇰", "fuck");
    check("\u{2800}\u{3164}", "");
}

#[test]
fn scripts_that_need_their_marks_keep_them() {
    check("กำ", "ก\u{E4D}\u{E32}");
    check("हिन्दी", "हिन्दी");
    let mut folded = Folded::default();

    folded.fold("हिe", Reading::Plain);

    let firsts: Vec<bool> = folded.glyphs().iter().map(|it| it.is_first).collect();
    assert_eq!(firsts, [true, false, true]);
}

#[test]
fn a_glyph_knows_its_bytes_and_what_stands_before_it() {
    let mut folded = Folded::default();

    folded.fold("a. 妈ß", Reading::Plain);

    let glyph = |letter, from, to, gap, is_first| Glyph { letter, from, to, gap, is_first };
    let expected = [
        glyph('a', 0, 1, Gap::None, true),
        glyph('妈', 3, 6, Gap::Space, true),
        glyph('s', 6, 8, Gap::None, true),
        glyph('s', 6, 8, Gap::None, false),
    ];
    assert_eq!(folded.glyphs(), expected);
}

#[test]
fn a_loose_reading_takes_digits_among_letters_for_letters() {
    let [i1, i2, l1, _] = LOOSE;

    assert_eq!(read("5h1t a55 k!ll 455", i1), "shitasskill455");
    assert_eq!(read("s1ut", l1), "slut");
    assert_eq!(read("５ｈ１ｔ 5һ1t", i1), "shitshit");
    assert_eq!(read("fuuuck asssss", i1), "fuckas");
    assert_eq!(read("fuuuck asssss", i2), "fuuckass");
}

#[test]
fn only_some_texts_need_a_loose_reading() {
    let needs = |text: &str| {
        let mut folded = Folded::default();
        folded.fold(text, Reading::Plain);
        folded.is_loose()
    };

    assert!(needs("5h1t") && needs("fuuuck") && needs("哈哈哈"));
    assert!(!needs("455") && !needs("hello 455") && !needs("前方高能"));
}

proptest! {
    #[test]
    fn any_text_folds_to_glyphs_within_it(text in any::<String>()) {
        let mut folded = Folded::default();
        for reading in LOOSE.into_iter().chain([Reading::Plain]) {
            folded.fold(&text, reading);
            let mut last = 0;
            for glyph in folded.glyphs() {
                prop_assert!(glyph.from >= last && glyph.from < glyph.to);
                prop_assert!(text.is_char_boundary(glyph.from.into()));
                prop_assert!(text.is_char_boundary(glyph.to.into()));
                last = glyph.from;
            }
        }
    }

    #[test]
    fn what_is_folded_folds_to_itself(text in any::<String>()) {
        let once = read(&text, Reading::Plain);

        prop_assert_eq!(read(&once, Reading::Plain), once);
    }
}
