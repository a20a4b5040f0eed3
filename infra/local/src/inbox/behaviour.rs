//! Receivers that misbehave, chosen by the path, to see how a sender reacts.

use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use http::StatusCode;

use super::below_home;

const STATUS_BOUNDS: RangeInclusive<u16> = 200..=599;
const DELAY_SECONDS_BOUNDS: RangeInclusive<u64> = 0..=60;

/// How the deliveries to a path are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Behaviour {
    pub(super) status: StatusCode,
    pub(super) delay: Duration,
}

impl Behaviour {
    /// `status/N` answers with status N, `slow/N` with 200 after N seconds, everything else with 200 at once.
    /// Returns `None` if `N` is not a number within its bounds.
    pub(super) fn from_path(path: &str) -> Option<Self> {
        let good = Self { status: StatusCode::OK, delay: Duration::ZERO };
        match below_home(path).and_then(|rest| rest.split_once('/')) {
            Some(("status", code)) => {
                let status = StatusCode::from_u16(number(code, &STATUS_BOUNDS)?).ok()?;
                Some(Self { status, ..good })
            }
            Some(("slow", seconds)) => {
                Some(Self { delay: Duration::from_secs(number(seconds, &DELAY_SECONDS_BOUNDS)?), ..good })
            }
            _ => Some(good),
        }
    }
}

fn number<N: FromStr + PartialOrd>(text: &str, bounds: &RangeInclusive<N>) -> Option<N> {
    text.parse().ok().filter(|number| bounds.contains(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_decides() {
        let answer = |rest: &str| {
            let behaviour = Behaviour::from_path(&format!("/dev/inbox{rest}"))?;
            Some((behaviour.status.as_u16(), behaviour.delay.as_secs()))
        };
        for good in ["", "/", "/x", "/status", "/slow", "/statuses/500", "/x/status/500"] {
            assert_eq!(answer(good), Some((200, 0)), "{good}");
        }
        for status in [200, 204, 301, 418, 503, 599] {
            assert_eq!(answer(&format!("/status/{status}")), Some((status, 0)));
        }
        for seconds in [0, 1, 60] {
            assert_eq!(answer(&format!("/slow/{seconds}")), Some((200, seconds)));
        }
        for senseless in
            ["/status/", "/status/199", "/status/600", "/status/ok", "/status/500/", "/slow/61", "/slow/-1"]
        {
            assert_eq!(answer(senseless), None, "{senseless}");
        }
    }
}
