//! The forms of values that several commands take.

use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use common::names::ClosedEnum;
use terminal::count;

/// Returns a parser of the members of a closed list, which the help names.
pub(super) fn member<T: ClosedEnum + Send + Sync>() -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(T::MEMBERS.iter().map(|member| member.name())).try_map(|name| name.parse::<T>())
}

/// Parses the name of a stack, as `CloudFormation` allows it.
pub(super) fn stack(text: &str) -> Result<String, String> {
    let is_first = text.starts_with(|first: char| first.is_ascii_alphabetic());
    if is_first && text.len() <= 128 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return Ok(text.to_owned());
    }
    Err("must be letters, digits and hyphens, at most 128, and begin with a letter".to_owned())
}

/// Parses a region, which is a part of host names.
pub(crate) fn region(text: &str) -> Result<String, String> {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
        return Ok(text.to_owned());
    }
    Err("must be a region of AWS, such as eu-central-1".to_owned())
}

/// Parses a whole number within bounds, which are among the numbers.
pub(super) fn number<const MIN: u32, const MAX: u32>(text: &str) -> Result<u32, String> {
    let parsed = text.parse().ok().filter(|number| (MIN..=MAX).contains(number));
    parsed.ok_or_else(|| format!("must be a whole number from {} to {}", count(MIN.into()), count(MAX.into())))
}

/// Parses a whole number with its unit, such as `90s`, `15m`, `24h` or `7d`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let parse = || {
        let (unit_at, unit) = text.char_indices().next_back()?;
        let unit_seconds = match unit {
            's' => 1,
            'm' => 60,
            'h' => 60 * 60,
            'd' => 24 * 60 * 60,
            _ => return None,
        };
        let number: u32 = text[..unit_at].parse().ok()?;
        Some(Duration::from_secs(u64::from(number) * unit_seconds))
    };
    parse().ok_or_else(|| "must be a whole number and a unit: s, m, h or d, such as 24h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_is_a_whole_number_and_a_unit() {
        for (text, seconds) in [("0s", 0), ("90s", 90), ("15m", 900), ("24h", 86_400), ("7d", 604_800)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for malformed in ["", "7", "d", "1.5h", "-1h", "7 d", "7w", "1h30m", "4294967296s", "7é"] {
            assert!(duration(malformed).is_err(), "{malformed}");
        }
    }

    #[test]
    fn a_stack_and_a_region_are_named_as_aws_allows_it() {
        assert_eq!(
            ["marketplace", "a-1", "", "bad stack", "1a", "ä"].map(|text| stack(text).is_ok()),
            [true, true, false, false, false, false]
        );
        assert_eq!(
            ["eu-central-1", "", "bad region", "EU"].map(|text| region(text).is_ok()),
            [true, false, false, false]
        );
    }

    #[test]
    fn a_number_is_whole_and_within_its_bounds() {
        assert_eq!([number::<1, 9>("1"), number::<1, 9>("9")], [Ok(1), Ok(9)]);
        for wrong in ["", "0", "10", "-1", "1.5", "x", "99999999999"] {
            assert_eq!(number::<1, 9>(wrong), Err("must be a whole number from 1 to 9".to_owned()), "{wrong}");
        }
    }
}
