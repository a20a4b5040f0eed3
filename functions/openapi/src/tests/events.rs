//! The webhooks are described as events are sent, and as the feed takes them.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::event::EventKind;
use common::timestamp::Timestamp;
use hmac::{Hmac, KeyInit, Mac};
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use sha2::Sha256;

use super::{description, misfits, resolved};

fn body<'a>(document: &'a Value, event: &str) -> &'a Value {
    &document["webhooks"][event]["post"]["requestBody"]["content"]["application/json"]
}

#[test]
fn the_data_has_its_fields_and_may_gain_others() {
    let document = description();
    for event in EventKind::ALL {
        let content = body(&document, event.as_str());
        let schema = &content["schema"];
        let data = content["example"]["data"].as_object().unwrap();
        let with = |name: &str, value: Option<Value>| {
            let mut example = content["example"].clone();
            let data = example["data"].as_object_mut().unwrap();
            match value {
                Some(value) => drop(data.insert(name.to_owned(), value)),
                None => drop(data.remove(name)),
            }
            misfits(&document, schema, &example).is_empty()
        };
        assert!(with("surprise", Some(json!(1))), "{event}");
        let described = resolved(&document, &resolved(&document, schema)["properties"]["data"]);
        assert!(data.keys().eq(described["properties"].as_object().unwrap().keys()), "{event}");
        for name in data.keys() {
            let of_trade = event.as_str().starts_with("trade.") && ["order_id", "listing_id"].contains(&name.as_str());
            let of_created = ["item_id", "variant_id", "market_hash_name"].contains(&name.as_str());
            let optional = of_trade || of_created;
            assert_eq!(with(name, None), optional, "{event} {name} absent");
            assert_eq!(with(name, Some(Value::Null)), optional, "{event} {name} null");
            assert!(!with(name, Some(json!(["x"]))), "{event} {name}");
        }
    }
}

#[test]
fn data_is_as_it_was_reported_and_the_feed_accepts_no_other() {
    let document = description();
    let content = body(&document, "order.completed");
    for (name, value, fits) in [
        ("total_usd", "12", true),
        ("total_usd", "12.5", true),
        ("total_usd", "12.505", false),
        ("total_usd", "-1", false),
        ("delivered_at", "2026-11-20T12:04:31+02:00", true),
        ("delivered_at", "2026-11-20t10:04:31.123456789z", true),
        ("delivered_at", "2026-11-20 10:04:31Z", false),
        ("delivered_at", "2026-11-20", false),
        ("order_id", "7D2F4A90-58C1-4F0E-8A35-1C9BE0A4D6F2", true),
        ("order_id", "7d2f4a9058c14f0e8a351c9be0a4d6f2", false),
    ] {
        let mut delivery = content["example"].clone();
        delivery["data"][name] = json!(value);
        assert_eq!(misfits(&document, &content["schema"], &delivery).is_empty(), fits, "{name}: {value}");
        let mut message = delivery;
        message["type"] = json!("event");
        message["account_id"] = message["id"].clone();
        let read = feed::parse(&message.to_string(), Timestamp::from_millis(0));
        assert_eq!(read.is_ok(), fits, "{name}: {value}: {read:?}");
    }
}

#[test]
fn the_signatures_of_the_example_are_right() {
    let document = description();
    let id = body(&document, "listing.created")["example"]["id"].as_str().unwrap().to_owned();
    let from = crate::OPENAPI.find(&format!("{{\"id\":\"{id}\"")).unwrap();
    let mut example = serde_json::Deserializer::from_str(&crate::OPENAPI[from..]).into_iter::<IgnoredAny>();
    example.next().unwrap().unwrap();
    let sent = &crate::OPENAPI[from..from + example.byte_offset()];
    let header = |name: &str| document["components"]["parameters"][name].clone();
    let described = header("X-Service-Signature")["description"].as_str().unwrap().to_owned();
    let secret = described.split('`').find(|text| text.starts_with("whsec_")).unwrap();
    let sign = |key: &[u8], text: &[u8]| {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
        mac.update(text);
        mac.finalize().into_bytes()
    };
    let own = format!("sha256={}", hex::encode(sign(secret.as_bytes(), sent.as_bytes())));
    assert_eq!(header("X-Service-Signature")["example"], own);
    let signed = format!("{id}.{}.{sent}", header("webhook-timestamp")["example"]);
    let standard = sign(&STANDARD.decode(&secret["whsec_".len()..]).unwrap(), signed.as_bytes());
    assert_eq!(header("webhook-signature")["example"], format!("v1,{}", STANDARD.encode(standard)));
}

#[test]
fn what_is_sent_is_what_is_described() {
    let document = description();
    let described: BTreeSet<_> = document["webhooks"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(described, EventKind::ALL.map(EventKind::as_str).into());
    for event in EventKind::ALL {
        let content = body(&document, event.as_str());
        let text = |name: &str| content["example"][name].as_str().unwrap();
        let (id, created_at) = (text("id").parse().unwrap(), text("created_at").parse().unwrap());
        let sent = webhooks::body(id, event, created_at, &event.sample_data().to_string());
        assert_eq!(serde_json::from_str::<Value>(&sent).unwrap(), content["example"]);
        assert_eq!(misfits(&document, &content["schema"], &content["example"]), [""; 0]);
        let marked: Value = serde_json::from_str(&webhooks::test_body(id, event, created_at)).unwrap();
        assert_eq!((misfits(&document, &content["schema"], &marked).len(), &marked["test"]), (0, &json!(true)));
    }
}

#[test]
fn every_delivery_carries_both_sets_of_headers() {
    let document = description();
    for event in EventKind::ALL {
        let parameters = document["webhooks"][event.as_str()]["post"]["parameters"].as_array().unwrap().iter();
        let headers: Vec<_> = parameters.map(|parameter| resolved(&document, parameter)).collect();
        assert!(headers.iter().all(|header| header["in"] == "header"), "{event}");
        let names = |is_required: bool| -> BTreeSet<_> {
            let some = headers.iter().filter(|header| header["required"] == is_required);
            some.map(|header| header["name"].as_str().unwrap().to_owned()).collect()
        };
        let service = ["Delivery-Id", "Event", "Signature", "Timestamp"].map(|name| format!("X-Service-{name}"));
        let standard = ["id", "signature", "timestamp"].map(|name| format!("webhook-{name}"));
        assert_eq!(names(true), service.into_iter().chain(standard).collect(), "{event}");
        assert_eq!(names(false), ["Event-Id", "Test"].map(|name| format!("X-Service-{name}")).into(), "{event}");
    }
}
