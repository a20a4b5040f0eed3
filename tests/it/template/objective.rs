//! The alarms on 5xx follow from the objective: 99.9% of the requests of 30 days are not answered with 5xx. Too few requests
//! say little, so there are rules for these.

use serde_json::{Value, json};
use tests::monitoring::alarm_properties;

/// What the objective allows, in hundredths of a percent of the requests.
const ALLOWED: u32 = 10;
const OBJECTIVE_HOURS: u32 = 30 * 24;

/// A period with at most this many requests counts only if it has `ENOUGH_ERRORS`.
const FEW_REQUESTS: u32 = 20;
const ENOUGH_ERRORS: u32 = 5;

/// An alarm on 5xx.
struct BurnRate {
    name: &'static str,
    /// It sees errors that use up this part of what the objective allows, in percent, within this many hours.
    spent: u32,
    hours: u32,
    /// Seconds.
    period: u32,
    evaluated: u32,
    needed: u32,
}

const FAST: BurnRate = BurnRate { name: "api-errors", spent: 2, hours: 1, period: 60, evaluated: 5, needed: 3 };
const SLOW: BurnRate = BurnRate { name: "api-errors-slow", spent: 5, hours: 6, period: 3_600, evaluated: 6, needed: 3 };
const STEADY: BurnRate =
    BurnRate { name: "api-errors-steady", spent: 10, hours: 72, period: 21_600, evaluated: 12, needed: 6 };

impl BurnRate {
    /// Returns the share of 5xx beyond which a period is bad, in hundredths of a percent.
    const fn threshold(&self) -> u32 {
        ALLOWED * self.spent * OBJECTIVE_HOURS / (self.hours * 100)
    }

    const fn is_bad(&self, requests: u32, errors: u32) -> bool {
        (requests > FEW_REQUESTS || errors >= ENOUGH_ERRORS) && 10_000 * errors > self.threshold() * requests
    }

    /// Returns whether the alarm fires if this share of many requests is answered with 5xx for long enough, in hundredths of
    /// a percent.
    const fn sees(&self, share: u32) -> bool {
        self.is_bad(10_000, share)
    }

    /// Returns how many seconds after the start of a total outage the last period ends that the alarm needs, or `None` if
    /// it never fires. The outage starts at this second of a period, and requests come evenly.
    fn seconds_to_alarm(&self, requests: u32, start: u32) -> Option<u32> {
        let begun = self.is_bad(requests, requests - requests * start / self.period);
        let full = self.is_bad(requests, requests);
        full.then(|| (self.needed + u32::from(!begun)) * self.period - start)
    }
}

/// Asserts that all metrics of an alarm have this period, and returns its expression.
fn expression(alarm: &Value, period: u32) -> &str {
    let queries = alarm["Metrics"].as_array().unwrap();
    for query in queries.iter().filter(|query| query["MetricStat"].is_object()) {
        assert_eq!((&query["MetricStat"]["Period"], &query["ReturnData"]), (&json!(period), &json!(false)), "{query}");
    }
    queries.iter().find_map(|query| query["Expression"].as_str()).unwrap()
}

#[test]
fn the_alarms_on_errors_follow_from_the_objective() {
    assert_eq!((FAST.threshold(), SLOW.threshold(), STEADY.threshold()), (144, 60, 10));
    for expected in [FAST, SLOW, STEADY] {
        let alarm = alarm_properties(expected.name);
        assert_eq!(
            expression(&alarm, expected.period),
            format!("IF(requests > {FEW_REQUESTS} OR errors >= {ENOUGH_ERRORS}, 100 * errors / requests, 0)")
        );
        assert_eq!(alarm["Threshold"], json!(f64::from(expected.threshold()) / 100.0), "{}", expected.name);
        assert_eq!(alarm["ComparisonOperator"], "GreaterThanThreshold");
        assert_eq!(
            (&alarm["EvaluationPeriods"], &alarm["DatapointsToAlarm"]),
            (&json!(expected.evaluated), &json!(expected.needed)),
            "{}",
            expected.name
        );
        assert_eq!(alarm["TreatMissingData"], "notBreaching");
    }
}

#[test]
fn a_total_outage_needs_three_minutes_or_four_if_requests_are_few() {
    let slowest = |requests: u32| (0..FAST.period).map(|start| FAST.seconds_to_alarm(requests, start)).max().unwrap();
    for requests in [21, 60, 600, 60_000] {
        assert_eq!(slowest(requests), Some(180), "{requests} a minute");
    }
    for requests in ENOUGH_ERRORS..=FEW_REQUESTS {
        assert!(slowest(requests).is_some_and(|seconds| seconds <= 240), "{requests} a minute");
    }
}

#[test]
fn a_total_outage_that_only_few_requests_meet_is_seen_after_hours() {
    let requests = ENOUGH_ERRORS - 1;
    assert_eq!(FAST.seconds_to_alarm(requests, 0), None);
    let slowest = (0..SLOW.period).map(|start| SLOW.seconds_to_alarm(requests * 60, start)).max().unwrap();
    assert!(slowest.is_some_and(|seconds| seconds <= 4 * 3_600), "{slowest:?}");
}

#[test]
fn steady_errors_beyond_the_objective_raise_an_alarm_even_if_they_are_too_few_for_the_others() {
    for share in ALLOWED + 1..=SLOW.threshold() {
        assert!(STEADY.sees(share) && !SLOW.sees(share) && !FAST.sees(share), "{share}");
    }
    assert!(!STEADY.sees(ALLOWED), "what the objective allows");
    let hours = (STEADY.needed + 1) * STEADY.period / 3_600;
    let spent = SLOW.threshold() * hours * 100 / (ALLOWED * OBJECTIVE_HOURS);
    assert_eq!((hours, spent), (42, 35), "hours until it fires, and percent of what 30 days allow");
}

/// The other alarms have told of it.
#[test]
fn an_outage_of_less_than_a_day_does_not_count_as_steady_errors() {
    let most_bad_periods = (24 * 3_600_u32).div_ceil(STEADY.period) + 1;
    assert!(most_bad_periods < STEADY.needed, "{most_bad_periods}");
}

/// AWS's documentation: at most seven days, and one day if a period is shorter than an hour.
#[test]
fn no_alarm_on_errors_looks_back_farther_than_cloudwatch_can() {
    for alarm in [FAST, SLOW, STEADY] {
        let days = if alarm.period < 3_600 { 1 } else { 7 };
        assert!(alarm.period * alarm.evaluated <= days * 24 * 3_600, "{}", alarm.name);
    }
}

/// Of fewer requests, the slowest 1% would be a single one.
#[test]
fn the_alarm_on_latency_waits_for_as_many_requests_as_its_percentile_needs() {
    let alarm = alarm_properties("api-latency");
    let queries = alarm["Metrics"].as_array().unwrap();
    let percentile = queries.iter().find_map(|query| query["MetricStat"]["Stat"].as_str()?.strip_prefix('p')).unwrap();
    let percentile: u32 = percentile.parse().unwrap();
    let enough = 100 / (100 - percentile);
    assert_eq!((percentile, enough), (99, 100));
    assert_eq!(expression(&alarm, 300), format!("IF(requests >= {enough}, slowest, 0)"));
    assert_eq!((&alarm["EvaluationPeriods"], &alarm["Threshold"]), (&json!(3), &json!(1_000)));
    assert_eq!(alarm["TreatMissingData"], "notBreaching");
}
