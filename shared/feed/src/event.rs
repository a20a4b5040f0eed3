//! The message about an event. Its data is checked against the schema of its kind, and kept byte for byte as received.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::rejection::{Rejection, read};
use common::event::{
    Event, EventKind, ListingCancelled, ListingCreated, ListingSold, OrderCompleted, OrderRefunded, Trade,
    WalletDeposit, WalletWithdrawal,
};
use common::ids::{EventId, UserId};
use common::timestamp::Timestamp;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventMessage {
    #[serde(rename = "type")]
    _type: String,
    id: EventId,
    event: EventKind,
    account_id: UserId,
    created_at: Timestamp,
    data: Box<RawValue>,
}

impl EventMessage {
    pub(super) fn event(self) -> Result<Event, Rejection> {
        let Self { id, event: kind, account_id, created_at, data, .. } = self;
        check(kind, data.get())?;
        Ok(Event { id, kind, account_id, created_at, data: data.into() })
    }
}

fn check(kind: EventKind, data: &str) -> Result<(), Rejection> {
    let fits = match kind {
        EventKind::ListingCreated => read::<ListingCreated>(data).map(drop),
        EventKind::ListingSold => read::<ListingSold>(data).map(drop),
        EventKind::ListingCancelled => read::<ListingCancelled>(data).map(drop),
        EventKind::OrderCompleted => read::<OrderCompleted>(data).map(drop),
        EventKind::OrderRefunded => read::<OrderRefunded>(data).map(drop),
        EventKind::TradeCompleted | EventKind::TradeReversed => read::<Trade>(data).map(drop),
        EventKind::WalletDeposit => read::<WalletDeposit>(data).map(drop),
        EventKind::WalletWithdrawal => read::<WalletWithdrawal>(data).map(drop),
    };
    fits.map_err(|Rejection { field, reason, .. }| {
        let field = if field.is_empty() { "data".to_owned() } else { format!("data.{field}") };
        Rejection::new(&field, reason)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::message::{Message, parse};
    use webhooks::body;

    const UUID: &str = "6f9619ff-8b86-d011-b42d-00c04fc964ff";

    fn now() -> Timestamp {
        "2026-11-20T12:00:00Z".parse().unwrap()
    }

    fn message(event: &str, data: &str) -> String {
        format!(
            r#"{{"type":"event","id":"{UUID}","event":"{event}","account_id":"{UUID}","created_at":"2026-11-20T12:04:31+02:00","data":{data}}}"#
        )
    }

    fn event(kind: EventKind, data: &str) -> Result<Event, Rejection> {
        match parse(&message(kind.as_str(), data), now())? {
            Message::Event(event) => Ok(event),
            other => panic!("not an event: {other:?}"),
        }
    }

    fn refused_field(kind: EventKind, data: &str) -> String {
        match event(kind, data) {
            Ok(_) => panic!("{kind} {data} was accepted"),
            Err(refused) => refused.field,
        }
    }

    fn sample(kind: EventKind) -> Map<String, Value> {
        match kind.sample_data() {
            Value::Object(data) => data,
            other => panic!("not an object: {other}"),
        }
    }

    fn is_optional(kind: EventKind, field: &str) -> bool {
        match kind {
            EventKind::ListingCreated => ["item_id", "variant_id", "market_hash_name"].contains(&field),
            EventKind::TradeCompleted | EventKind::TradeReversed => ["order_id", "listing_id"].contains(&field),
            _ => false,
        }
    }

    #[test]
    fn an_event_is_read_as_it_was_sent() {
        let data = r#"{ "deposit_id": "5E9A3C21-7f64-4d18-9b0a-2c8d1e6f4a70", "amount_usd": "5.5" }"#;
        let expected = Event {
            id: UUID.parse().unwrap(),
            kind: EventKind::WalletDeposit,
            account_id: UUID.parse().unwrap(),
            created_at: "2026-11-20T10:04:31Z".parse().unwrap(),
            data: data.into(),
        };
        assert_eq!(event(EventKind::WalletDeposit, data), Ok(expected));
    }

    #[test]
    fn the_data_of_each_kind_is_strict() {
        for kind in EventKind::ALL {
            let sample = sample(kind);
            event(kind, &json!(sample).to_string()).unwrap();
            for (name, value) in &sample {
                let field = format!("data.{name}");
                let with = |value: Value| {
                    let mut data = sample.clone();
                    data.insert(name.clone(), value);
                    json!(data).to_string()
                };
                let mut without = sample.clone();
                without.remove(name);
                for lacking in [json!(without).to_string(), with(Value::Null)] {
                    if is_optional(kind, name) {
                        event(kind, &lacking).unwrap();
                    } else {
                        assert_eq!(refused_field(kind, &lacking), field);
                    }
                }
                for wrong in
                    [json!(1), json!(""), json!([value]), json!({"bot": null}), json!({"owner": null, "sent": null})]
                {
                    assert_eq!(refused_field(kind, &with(wrong)), field);
                }
                let twice = format!(r#"{{"{name}":{value},{}"#, &json!(sample).to_string()[1..]);
                assert_eq!(refused_field(kind, &twice), field);
            }
            let mut more = sample.clone();
            more.insert("surprise".to_owned(), Value::Null);
            assert_eq!(refused_field(kind, &json!(more).to_string()), "data.surprise");
            assert_eq!(refused_field(kind, &json!(sample.values().collect::<Vec<_>>()).to_string()), "data");
        }
    }

    #[test]
    fn the_data_is_one_object() {
        for (data, field) in [
            ("null", "data"),
            ("[]", "data"),
            ("\"{}\"", "data"),
            ("{}", "data.deposit_id"),
            ("{\"deposit_id\":{}}", "data.deposit_id"),
            ("{\"surprise\":{\"a\":1,\"a\":1}}", "data.surprise"),
            (r#"{"amount_usd":"1","amount\u005fusd":"1"}"#, "data.amount_usd"),
            ("", "data"),
            ("{\"surprise\":1,}", "data"),
        ] {
            assert_eq!(refused_field(EventKind::WalletDeposit, data), field, "{data}");
        }
        let good = json!(sample(EventKind::WalletDeposit)).to_string();
        for broken in [format!("{good}{good}"), format!("{good},{good}"), good[1..].to_owned()] {
            assert!(event(EventKind::WalletDeposit, &broken).is_err(), "{broken}");
        }
        assert_eq!(refused_field(EventKind::WalletDeposit, &"[".repeat(100_000)), "data");
    }

    #[test]
    fn the_envelope_is_strict() {
        let good = message("listing.sold", &EventKind::ListingSold.sample_data().to_string());
        let good: Map<String, Value> = serde_json::from_str(&good).unwrap();
        let refused = |message: &Map<String, Value>| parse(&json!(message).to_string(), now()).unwrap_err();
        let with = |name: &str, value: Value| {
            let mut message = good.clone();
            message.insert(name.to_owned(), value);
            message
        };
        for name in ["id", "event", "account_id", "created_at", "data"] {
            let mut without = good.clone();
            let value = without.remove(name).unwrap();
            assert_eq!(refused(&without).field, name);
            for wrong in [Value::Null, json!(1), json!("x"), json!([value])] {
                assert_eq!(refused(&with(name, wrong)).field, name);
            }
            let twice = format!(r#"{{"{name}":{value},{}"#, &json!(good).to_string()[1..]);
            assert_eq!(parse(&twice, now()).unwrap_err().field, name);
        }
        for more in ["version", "kind"] {
            assert_eq!(refused(&with(more, json!(1))).field, more);
        }
        assert_eq!(refused(&with("event", json!({"listing.sold": null}))).field, "event");
        let unknown = refused(&with("event", json!("listing.renamed")));
        assert!(unknown.reason.starts_with("must be one of listing.created, "), "{unknown}");
        assert_eq!(refused(&with("event", json!("order.completed"))).field, "data.kind");
    }

    prop_compose! {
        /// Generates a kind's sample data, with its fields in any order and white space between the tokens.
        fn spaced()(kind in prop::sample::select(EventKind::ALL.to_vec()))(
            kind in Just(kind),
            fields in Just(sample(kind).into_iter().collect::<Vec<_>>()).prop_shuffle(),
            spaces in prop::collection::vec("[ \t\r\n]{0,3}", 4 * 7),
        ) -> (EventKind, String) {
            let mut spaces = spaces.into_iter();
            let mut space = || spaces.next().unwrap_or_default();
            let fields: Vec<_> = fields
                .into_iter()
                .map(|(name, value)| format!("{}{}{}:{}{value}{}", space(), json!(name), space(), space(), space()))
                .collect();
            (kind, format!("{{{}}}", fields.join(",")))
        }
    }

    proptest! {
        #[test]
        fn data_is_delivered_byte_for_byte((kind, data) in spaced(), around in "[ \t\r\n]{0,3}") {
            let event = event(kind, &format!("{around}{data}{around}")).unwrap();
            prop_assert_eq!(&*event.data, &data);
            let delivery = uuid::Uuid::nil().into();
            let body = body(delivery, event.kind, event.created_at, &event.data);
            prop_assert!(body.ends_with(&format!("\"data\":{data}}}")), "{}", body);
            let sent: Value = serde_json::from_str(&body).unwrap();
            prop_assert_eq!(&sent["data"], &kind.sample_data());
        }
    }
}
