//! Prices in us-east-1, in dollars, by "Amazon DynamoDB pricing" (on-demand) and "Amazon S3 pricing" (standard).

use local::aws::limits::Report;

/// For a million read units.
pub(super) const MILLION_READ_UNITS: f64 = 0.125;
/// For a million write units.
const MILLION_WRITE_UNITS: f64 = 0.625;
/// For a million GETs.
const MILLION_GETS: f64 = 0.4;
/// For a million PUTs.
const MILLION_PUTS: f64 = 5.0;

/// Returns what the stores were paid for what a report counts.
pub(super) fn dollars(report: &Report) -> f64 {
    let units = report.total();
    let (gets, puts) = (report.objects.gets as f64, report.objects.puts as f64);
    let millions =
        units.read * MILLION_READ_UNITS + units.write * MILLION_WRITE_UNITS + gets * MILLION_GETS + puts * MILLION_PUTS;
    millions / 1e6
}

#[cfg(test)]
mod tests {
    use local::aws::limits::ObjectReport;

    use super::*;

    #[test]
    fn requests_for_objects_are_paid_by_their_kind() {
        let objects = ObjectReport { gets: 1_000, puts: 100, ..ObjectReport::default() };
        let paid = dollars(&Report { objects, ..Report::default() });
        assert!((paid - 0.000_9).abs() < 1e-12, "{paid}");
    }
}
