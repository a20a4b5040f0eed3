//! Points in time, to the millisecond, in UTC.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use super::names::text_or_packed;

/// Milliseconds since the Unix epoch; years 0000 to 9999.
///
/// Any RFC 3339 text is accepted, with any offset, and truncated to milliseconds (specification 1.2.6). A timestamp is
/// shown and stored as `YYYY-MM-DDTHH:MM:SS.mmmZ`. Because the width is fixed, text order is time order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// The text is not RFC 3339, or lies outside the years 0000 to 9999 in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("must be an RFC 3339 date-time, such as \"2026-11-20T10:00:00Z\"")]
pub struct TimestampError;

/// The milliseconds of a day.
pub const DAY_MILLIS: i64 = 24 * 60 * 60 * 1_000;

/// 0000-01-01T00:00:00.000Z and 9999-12-31T23:59:59.999Z.
const RANGE: std::ops::RangeInclusive<i64> = -62_167_219_200_000..=253_402_300_799_999;

impl Timestamp {
    /// The time this many milliseconds after the Unix epoch (before it, if negative), clamped to years 0000 to 9999.
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.clamp(*RANGE.start(), *RANGE.end()))
    }

    /// Milliseconds since the Unix epoch.
    pub fn millis(self) -> i64 {
        self.0
    }

    /// Whole seconds since the Unix epoch, rounded down.
    pub fn seconds(self) -> i64 {
        self.0.div_euclid(1_000)
    }

    /// Whole minutes since the Unix epoch, rounded down. This number names a rate-limit minute.
    pub fn minute(self) -> i64 {
        self.0.div_euclid(60_000)
    }

    /// Seconds until the next UTC minute begins, 1 to 60.
    pub fn seconds_to_next_minute(self) -> u32 {
        60 - self.seconds().rem_euclid(60) as u32
    }

    /// This time moved by a number of milliseconds, which may be negative.
    #[must_use]
    pub fn plus_millis(self, millis: i64) -> Self {
        Self::from_millis(self.0.saturating_add(millis))
    }

    /// The UTC month as `YYYY-MM`.
    pub fn month(self) -> String {
        let mut text = self.to_string();
        text.truncate(7);
        text
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, TimestampError> {
        // The parser accepts any separator. RFC 3339, section 5.6, allows only these.
        if !matches!(text.as_bytes().get(10), Some(b'T' | b't' | b' ')) {
            return Err(TimestampError);
        }
        let parsed = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| TimestampError)?;
        let millis = parsed.unix_timestamp_nanos().div_euclid(1_000_000);
        let millis = i64::try_from(millis).map_err(|_| TimestampError)?;
        if RANGE.contains(&millis) { Ok(Self(millis)) } else { Err(TimestampError) }
    }
}

impl TryFrom<String> for Timestamp {
    type Error = TimestampError;

    fn try_from(text: String) -> Result<Self, TimestampError> {
        text.parse()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = i128::from(self.0) * 1_000_000;
        let at = OffsetDateTime::from_unix_timestamp_nanos(nanos).map_err(|_| fmt::Error)?;
        let (year, month, day) = at.to_calendar_date();
        let (hour, minute, second, milli) = at.to_hms_milli();
        let month = u8::from(month);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
    }
}

text_or_packed!(Timestamp, i64, |at| at.millis(), Timestamp::from_millis);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &str) -> Result<String, TimestampError> {
        text.parse::<Timestamp>().map(|t| t.to_string())
    }

    #[test]
    fn any_offset_is_brought_to_utc_and_milliseconds() {
        assert_eq!(shown("2026-11-20T10:00:00Z").unwrap(), "2026-11-20T10:00:00.000Z");
        assert_eq!(shown("2026-11-20T10:00:00.123999+02:00").unwrap(), "2026-11-20T08:00:00.123Z");
        assert_eq!(shown("1969-12-31T23:59:59.9999Z").unwrap(), "1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn what_is_no_rfc_3339_or_leaves_the_years_is_refused() {
        for bad in [
            "",
            "2026-11-20",
            "2026-11-20T10:00:00",
            "2026-11-20x10:00:00Z",
            "2026-13-01T00:00:00Z",
            "1763632800",
            "0000-01-01T00:00:00+01:00",
            "9999-12-31T23:59:59-01:00",
        ] {
            assert_eq!(shown(bad), Err(TimestampError), "{bad}");
        }
    }

    #[test]
    fn a_minute_ends_after_one_to_sixty_seconds() {
        let at = |millis| Timestamp::from_millis(millis).seconds_to_next_minute();
        assert_eq!((at(0), at(999), at(1_000), at(59_999)), (60, 60, 59, 1));
    }

    proptest! {
        #[test]
        fn text_order_is_time_order(a in RANGE, b in RANGE) {
            let (a, b) = (Timestamp(a), Timestamp(b));
            prop_assert_eq!(a.to_string().cmp(&b.to_string()), a.cmp(&b));
            prop_assert_eq!(a.to_string().parse::<Timestamp>().unwrap(), a);
        }
    }
}
