//! Lengths of time, as arguments write them.

use std::time::Duration;

const FORM: &str = "must be a whole number and a unit: s, m, h or d, such as 24h";

/// Parses a whole number with its unit, such as `90s`, `15m`, `24h` or `7d`.
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
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
    parse().ok_or_else(|| FORM.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_is_a_whole_number_and_a_unit() {
        for (text, seconds) in [("0s", 0), ("90s", 90), ("15m", 900), ("24h", 86_400), ("7d", 604_800)] {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for malformed in ["", "7", "d", "1.5h", "-1h", "7 d", "7w", "1h30m", "4294967296s", "7é"] {
            assert_eq!(parse_duration(malformed), Err(FORM.to_owned()), "{malformed}");
        }
    }
}
