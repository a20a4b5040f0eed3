//! Folds texts: those that differ only in case, in the kind of their white space, or in how Unicode spells them, become the
//! same bytes.
//!
//! `docs/specification.md`, 4.5.2, has the rule. Two texts fold to the same if they are a *canonical caseless match*
//! (Unicode 3.13, D145). That definition compares decomposed texts. Here they are composed again at the end, so that a
//! letter and its accent stay one character, and an `e` is not found in an `é`.

use std::borrow::Cow;

use icu_casemap::{CaseMapper, CaseMapperBorrowed};
use icu_normalizer::{
    ComposingNormalizer, ComposingNormalizerBorrowed, DecomposingNormalizer, DecomposingNormalizerBorrowed,
};

const DECOMPOSER: DecomposingNormalizerBorrowed<'static> = DecomposingNormalizer::new_nfd();
const CASES: CaseMapperBorrowed<'static> = CaseMapper::new();
const COMPOSER: ComposingNormalizerBorrowed<'static> = ComposingNormalizer::new_nfc();
const COMBINING_DOT_ABOVE: char = '\u{307}';

/// Appends a text, folded. `folded` must be empty or end with a whole text.
///
/// Most names are ASCII, or nearly so. Only what is not ASCII takes the long way, together with the character before it,
/// which it may compose with. Nothing composes with an ASCII character behind it.
pub(super) fn push_folded(folded: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| !byte.is_ascii()) {
        let (ascii, behind) = rest.split_at(at);
        let (others, behind) = behind.split_at(behind.find(|c: char| c.is_ascii()).unwrap_or(behind.len()));
        push_lower_case(folded, ascii);
        let from = folded.len() - ascii.len().min(1);
        folded.extend(others.chars().map(blank));
        if !is_folded(&folded[from..]) {
            let piece = folded.split_off(from);
            let decomposed = DECOMPOSER.normalize(&piece);
            folded.push_str(&COMPOSER.normalize(&without_dots(CASES.fold_string(&decomposed))));
        }
        rest = behind;
    }
    push_lower_case(folded, rest);
}

fn push_lower_case(folded: &mut String, ascii: &str) {
    let from = folded.len();
    if ascii.bytes().any(|byte| matches!(byte, b'\t'..=b'\r')) {
        folded.extend(ascii.chars().map(blank));
    } else {
        folded.push_str(ascii);
    }
    folded[from..].make_ascii_lowercase();
}

/// Makes a blank of any white space, such as the no-break space of French names. It composes with nothing.
fn blank(character: char) -> char {
    if character.is_whitespace() { ' ' } else { character }
}

/// Returns whether a text certainly is folded. That is quicker to tell than to fold it.
fn is_folded(text: &str) -> bool {
    !text.contains(COMBINING_DOT_ABOVE) && CASES.fold_string(text) == text && COMPOSER.is_normalized(text)
}

/// Leaves out combining dots above behind an `i`. Programs that convert `İ` to lower case make an `i` and such a dot of
/// it, and so does the folding.
fn without_dots(text: Cow<'_, str>) -> Cow<'_, str> {
    if !text.contains(COMBINING_DOT_ABOVE) {
        return text;
    }
    let mut kept = String::with_capacity(text.len());
    for character in text.chars() {
        if character != COMBINING_DOT_ABOVE || !kept.ends_with('i') {
            kept.push(character);
        }
    }
    Cow::Owned(kept)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn folded(text: &str) -> String {
        let mut folded = String::new();
        push_folded(&mut folded, text);
        folded
    }

    #[test]
    fn texts_that_differ_in_case_or_spelling_fold_to_the_same() {
        let equal: [&[&str]; _] = [
            &["aZ", "Az"],
            &["a b", "a\u{a0}b", "a\u{202f}b", "a\u{3000}B", "a\tb", "a\nb"],
            &["é é", "é\u{a0}É"],
            &["Σ", "σ", "ς"],
            &["K", "k", "\u{212a}"],
            &["\u{c5}", "\u{e5}", "\u{212b}", "A\u{30a}"],
            &["s", "\u{17f}"],
            &["\u{b5}", "\u{39c}", "\u{3bc}"],
            &["ß", "ẞ", "ss", "SS", "ſs"],
            &["ﬁ", "fi"],
            &["\u{fb05}", "\u{fb06}", "ST"],
            &["\u{1c4}", "\u{1c5}", "\u{1c6}"],
            &["\u{1f88}", "\u{1f80}", "\u{1f00}\u{345}", "ἀΙ"],
            &["\u{345}", "\u{399}", "\u{3b9}", "\u{1fbe}"],
            &["\u{10d0}", "\u{1c90}"],
            &["\u{13a0}", "\u{ab70}"],
            &["\u{390}", "\u{1fd3}", "Ι\u{308}\u{301}"],
            &["é", "É", "e\u{301}", "E\u{301}"],
            &["ệ", "e\u{302}\u{323}", "E\u{323}\u{302}"],
            &["각", "\u{1100}\u{1161}\u{11a8}"],
            &["istanbul", "İstanbul", "ISTANBUL", "i\u{307}stanbul", "I\u{307}\u{307}stanbul"],
        ];
        for texts in equal {
            let forms: Vec<String> = texts.iter().map(|text| folded(text)).collect();
            assert!(forms.iter().all(|form| *form == forms[0]), "{texts:?}: {forms:?}");
        }
    }

    #[test]
    fn no_other_texts_become_equal() {
        let different =
            [("ı", "i"), ("é", "e"), ("j\u{307}", "j"), ("\u{307}i", "i"), ("™", "tm"), ("ａ", "a"), ("가", "각")];
        for (one, other) in different {
            assert_ne!(folded(one), folded(other));
        }
    }

    #[test]
    fn a_character_that_looks_folded_is() {
        for character in ('\u{80}'..=char::MAX).map(String::from).filter(|character| is_folded(character)) {
            let decomposed = DECOMPOSER.normalize(&character);
            assert_eq!(COMPOSER.normalize(&CASES.fold_string(&decomposed)), character);
        }
    }

    proptest! {
        #[test]
        fn pieces_fold_like_the_whole(text in "[aAiIeſßİΣᾳé각☆ \\u{a0}\\u{301}\\u{307}\\u{323}\\u{345}\\u{11a8}]{0,8}|\\PC{0,12}") {
            let blanks: String = text.chars().map(blank).collect();
            let whole = without_dots(CASES.fold_string(&DECOMPOSER.normalize(&blanks))).into_owned();
            prop_assert_eq!(folded(&text), COMPOSER.normalize(&whole));
        }

        #[test]
        fn a_folded_text_stays_as_it_is_and_has_no_new_control_characters(text in "\\PC{0,12}") {
            let once = folded(&text);
            prop_assert_eq!(folded(&once), once.clone());
            prop_assert!(!once.bytes().any(|byte| byte.is_ascii_control()), "{:?}", once);
        }
    }
}
