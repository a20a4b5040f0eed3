//! What the headers of a 200 and of its 304 say about the state that the answer was made from.

use std::time::{Duration, SystemTime};

use common::timestamp::Timestamp;
use http::header::{HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE, LAST_MODIFIED};
use httpdate::{fmt_http_date, parse_http_date};
use serde::{Serialize, Serializer};

const LOG_POSITION: HeaderName = HeaderName::from_static("x-log-position");

/// A body, and the state that it was made from.
#[derive(Clone, Debug)]
pub struct Stated<T> {
    pub body: T,
    pub state: State,
}

/// Only the body is serialised.
impl<T: Serialize> Serialize for Stated<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.body.serialize(serializer)
    }
}

/// The state that an answer was made from, as far as headers tell it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Nothing but the entity tag tells it.
    #[default]
    Untold,
    /// A position in the log of changes. Two pages with the same one show the same state.
    LogPosition(u64),
    /// Dates of what the answer shows.
    Modified {
        /// What `Last-Modified` shows.
        newest: Timestamp,
        /// Since when the answer has been the same. Never before `newest`.
        changed: Timestamp,
    },
}

impl State {
    /// Returns the header that tells the state.
    pub(crate) fn header(self) -> Option<(HeaderName, HeaderValue)> {
        match self {
            Self::Untold => None,
            Self::LogPosition(position) => Some((LOG_POSITION, position.into())),
            Self::Modified { newest, .. } => {
                let date = HeaderValue::try_from(fmt_http_date(since_epoch(newest.seconds(), 0)?)).ok()?;
                Some((LAST_MODIFIED, date))
            }
        }
    }

    /// Returns whether nothing has changed since the date in `If-Modified-Since` (RFC 9110, section 13.1.3). A header
    /// that is no date is ignored, and so is any if the state has no date.
    ///
    /// A client sends the date of the newest quote, cut to its second. A change within that second is not seen.
    pub(crate) fn is_unchanged_since(self, headers: &HeaderMap) -> bool {
        let Self::Modified { newest, changed } = self else { return false };
        let Some(date) = headers.get(IF_MODIFIED_SINCE).and_then(|value| parse_http_date(value.to_str().ok()?).ok())
        else {
            return false;
        };
        let changed = if changed == newest { since_epoch(newest.seconds(), 0) } else { precisely(changed) };
        changed.is_some_and(|changed| changed <= date)
    }
}

fn precisely(at: Timestamp) -> Option<SystemTime> {
    since_epoch(at.seconds(), at.millis().rem_euclid(1_000))
}

/// Returns `None` for a time before 1970, which no HTTP date of a quote is.
fn since_epoch(seconds: i64, millis: i64) -> Option<SystemTime> {
    let (seconds, millis) = (u64::try_from(seconds).ok()?, u64::try_from(millis).ok()?);
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds) + Duration::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-20T10:00:00.700Z
    const NEWEST: i64 = 1_795_168_800_700;

    fn state(changed_after_millis: i64) -> State {
        let newest = Timestamp::from_millis(NEWEST);
        State::Modified { newest, changed: newest.plus_millis(changed_after_millis) }
    }

    fn since(state: State, date: &'static str) -> bool {
        state.is_unchanged_since(&HeaderMap::from_iter([(IF_MODIFIED_SINCE, HeaderValue::from_static(date))]))
    }

    #[test]
    fn the_date_is_cut_to_its_second() {
        let (name, value) = state(0).header().unwrap();
        assert_eq!((name, value.to_str().unwrap()), (LAST_MODIFIED, "Fri, 20 Nov 2026 10:00:00 GMT"));
        assert_eq!(State::Untold.header(), None);
        assert_eq!(State::LogPosition(7).header(), Some((LOG_POSITION, 7.into())));
    }

    #[test]
    fn nothing_has_changed_since_the_date_that_was_sent_or_a_later_one() {
        for (date, expected) in [
            ("Fri, 20 Nov 2026 09:59:59 GMT", false),
            ("Fri, 20 Nov 2026 10:00:00 GMT", true),
            ("Friday, 20-Nov-26 10:00:01 GMT", true),
            ("2026-11-20T10:00:01Z", false),
            ("", false),
        ] {
            assert_eq!(since(state(0), date), expected, "{date}");
        }
        assert!(!since(State::LogPosition(7), "Fri, 20 Nov 2026 10:00:01 GMT"));
    }

    #[test]
    fn a_change_after_the_newest_quote_is_seen_to_the_millisecond() {
        assert!(!since(state(300), "Fri, 20 Nov 2026 10:00:00 GMT"));
        assert!(since(state(300), "Fri, 20 Nov 2026 10:00:01 GMT"));
        assert!(!since(state(301), "Fri, 20 Nov 2026 10:00:01 GMT"));
    }
}
