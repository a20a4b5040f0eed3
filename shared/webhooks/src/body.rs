//! Builds the body of a delivery. Nothing else does, because every attempt must sign and send the same bytes.

use types::event::EventKind;
use types::ids::DeliveryId;
use types::timestamp::Timestamp;

/// Returns the body of a delivery (specification 6.3). It is built once and sent byte for byte on every attempt.
///
/// `created_at` is the time of the event. `data` is one JSON object as the feed accepted it, and goes into the body
/// unchanged.
pub fn body(delivery: DeliveryId, kind: EventKind, created_at: Timestamp, data: &str) -> String {
    // Id, event name and time have no characters that JSON would escape.
    format!(r#"{{"id":"{delivery}","event":"{kind}","created_at":"{created_at}","data":{data}}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_pinned() {
        let delivery = "11B8A653-fc28-5781-abb6-69448af70feb".parse().unwrap();
        let created_at = "2026-11-20T12:04:31.2509+02:00".parse().unwrap();
        let data = "{ \"amount_usd\" : \"5\",\n\t\"deposit_id\":\"5E9A3C21-7f64-4d18-9b0a-2c8d1e6f4a70\" }";
        let expected = concat!(
            r#"{"id":"11b8a653-fc28-5781-abb6-69448af70feb","event":"wallet.deposit","#,
            r#""created_at":"2026-11-20T10:04:31.250Z","data":{ "amount_usd" : "5","#,
            "\n\t\"deposit_id\":\"5E9A3C21-7f64-4d18-9b0a-2c8d1e6f4a70\" }}",
        );
        assert_eq!(body(delivery, EventKind::WalletDeposit, created_at, data), expected);
    }
}
