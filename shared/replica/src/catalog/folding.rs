//! Case folding: brings texts that differ only in case into one form, so that they are compared byte by byte.
//!
//! Every character is folded by itself into one character, by Unicode's *simple case folding*. So the final sigma `ς`
//! equals `σ`, but `ß` does not equal `ss`. There are two exceptions. Unicode has no simple folding for `İ`; here it
//! equals `i`. And programs that convert `İ` to lower case make an `i` and a combining dot of it, so a combining dot
//! behind an `i` is left out.

/// U+0307, which is left out behind an `i`.
const COMBINING_DOT_ABOVE: char = '\u{307}';

/// Appends a text, folded. `folded` must be empty or end with a whole text.
pub(super) fn push_folded(folded: &mut String, text: &str) {
    for character in text.chars() {
        if character.is_ascii() {
            folded.push(character.to_ascii_lowercase());
        } else if character != COMBINING_DOT_ABOVE || !folded.ends_with('i') {
            folded.push(fold(character));
        }
    }
}

/// Returns the simple case folding of a character. The standard library has no table of it, but nearly always it is the
/// lower case of the upper case, where each is a single character.
fn fold(character: char) -> char {
    match character {
        'İ' => 'i',
        // Its upper case is the I, but it folds to itself.
        'ı' => 'ı',
        // Letters with several characters as their upper case, which fold to another one all the same.
        '\u{1fd3}' => '\u{390}',
        '\u{1fe3}' => '\u{3b0}',
        '\u{fb05}' => '\u{fb06}',
        _ => {
            let upper = single(character.to_uppercase()).unwrap_or(character);
            single(upper.to_lowercase()).unwrap_or(character)
        }
    }
}

/// Returns the only character of several, if it is the only one.
fn single(mut characters: impl ExactSizeIterator<Item = char>) -> Option<char> {
    if characters.len() == 1 { characters.next() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str) -> String {
        let mut folded = String::new();
        push_folded(&mut folded, text);
        folded
    }

    #[test]
    fn characters_that_differ_in_case_fold_to_the_same() {
        let equal = [
            "Aa",
            "Σσς",
            "Kk\u{212a}",
            "\u{c5}\u{e5}\u{212b}",
            "Ss\u{17f}",
            "\u{b5}\u{39c}\u{3bc}",
            "\u{1e9e}\u{df}",
            "\u{1c4}\u{1c5}\u{1c6}",
            "\u{1f88}\u{1f80}",
            "\u{345}\u{399}\u{3b9}\u{1fbe}",
            "\u{10d0}\u{1c90}",
            "\u{13a0}\u{ab70}",
            "\u{390}\u{1fd3}",
        ];
        for characters in equal {
            let mut forms: Vec<String> = characters.chars().map(|character| folded(&character.to_string())).collect();
            forms.dedup();
            assert_eq!(forms.len(), 1, "{characters}: {forms:?}");
        }
    }

    #[test]
    fn no_other_characters_become_equal() {
        for (one, other) in [("ß", "ss"), ("ı", "i"), ("\u{e9}", "e"), ("e\u{301}", "\u{e9}"), ("j\u{307}", "j")] {
            assert_ne!(folded(one), folded(other));
        }
    }

    #[test]
    fn dots_on_an_i_do_not_matter() {
        for text in ["İstanbul", "ISTANBUL", "i\u{307}stanbul", "I\u{307}\u{307}stanbul"] {
            assert_eq!(folded(text), "istanbul");
        }
        assert_eq!(folded("\u{307}i"), "\u{307}i");
    }
}
