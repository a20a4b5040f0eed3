//! The feed, through the queue and with `marketctl`.

use common::resources::Queue;
use common::scope::Scope;
use serde_json::{Value, json};
use tests::{HttpReply, Target, balance, item, listing, marketctl, marketplace, order, quote, stack_name, uuid};

const TEN_O_CLOCK: &str = "2026-11-20T10:00:00Z";

fn texts(messages: &[Value]) -> Vec<String> {
    messages.iter().map(Value::to_string).collect()
}

fn has_one(reply: &HttpReply) -> bool {
    reply.status == 200 && reply.json()["total"] == 1
}

/// Returns a listing of the test's own item.
fn own_listing(target: &Target, number: u32) -> Value {
    let mut listing = listing(number, "1.00", TEN_O_CLOCK, 1);
    (listing["id"], listing["item_id"]) = (json!(target.uuid(number)), json!(target.word()));
    listing
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_sent_through_the_queue_show_in_every_answer() {
    let target = Target::new().await;
    let (word, user) = (target.word(), target.uuid(1));
    let mut bought = order(user.into(), 1, TEN_O_CLOCK, 1);
    bought["id"] = json!(target.uuid(1));
    let messages = [
        marketplace(&word, true, 1),
        item(&word, &word, Some("AK"), 1),
        quote(target.uuid(7), &word, &["5.00"], &target.ago(3_600)),
        own_listing(&target, 1),
        bought,
        balance(user.into(), "1.00", "2.00", "3.00", 1),
    ];
    target.queue(Queue::Feed).send(&texts(&messages)).await;
    let (key, _) = target.key_of(user.into(), &Scope::ALL).await;
    for path in [&format!("catalog?kind={word}"), &format!("listings?item_id={word}"), "orders"] {
        target.get_until(&key, &format!("/v1/public/{path}"), has_one).await;
    }
    for path in [format!("items/{word}"), format!("prices/{}", target.uuid(7))] {
        target.get_until(&key, &format!("/v1/public/{path}"), |reply| reply.status == 200).await;
    }
    let has_come = |reply: &HttpReply| reply.json()["available_usd"] == "3.00";
    target.get_until(&key, "/v1/public/wallet/balance", has_come).await;
    let is_listed = |reply: &HttpReply| reply.json().as_array().unwrap().iter().any(|record| record["key"] == word);
    target.get_until(&key, "/v1/public/marketplaces", is_listed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listing_that_marketctl_sends_shows_until_it_is_sold() {
    let target = Target::new().await;
    let key = target.full_key().await;
    let path = format!("/v1/public/listings?item_id={}", target.word());
    let mut sold = own_listing(&target, 1);
    (sold["status"], sold["version"]) = (json!("sold"), json!(2));
    for (message, total) in [(own_listing(&target, 1), 1), (sold, 0)] {
        let run = marketctl(&target.variables, &["--json", "feed", "send", "-"], &message.to_string()).await;
        assert_eq!((run.code, run.json()), (0, json!({"sent": 1, "refused": []})), "{run:?}");
        target.get_until(&key, &path, |reply| reply.status == 200 && reply.json()["total"] == total).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_messages_become_dead_letters_with_field_and_reason_and_the_others_are_applied() {
    let target = Target::new().await;
    let word = target.word();
    let changed = |field: &str, value: Value| {
        let mut message = item(&word, &word, None, 9);
        message[field] = value;
        message.to_string()
    };
    let mut unbalanced = balance(target.uuid(1).into(), "1.00", "2.00", "3.01", 1);
    unbalanced["account_id"] = json!(word);
    let mut twice = item(&word, &word, None, 9);
    (twice["kind"], twice["version"]) = (json!(7), json!("nine"));
    let twice = twice.to_string();
    let nameless = format!("{},\"\":1}}", changed("kind", json!(7)).trim_end_matches('}'));
    let mut bad = vec![
        (twice.clone(), "kind"),
        (nameless.clone(), "kind"),
        (changed("kind", json!(7)), "kind"),
        (changed("bonus", json!(1)), "bonus"),
        (changed("version", json!("nine")), "version"),
        (format!("not json, {word}"), "$"),
        (json!({"id": word}).to_string(), "type"),
        (unbalanced.to_string(), "account_id"),
    ];
    let good = (1..=bad.len()).map(|number| own_listing(&target, u32::try_from(number).unwrap()).to_string());
    let mixed: Vec<_> = good.zip(bad.iter().map(|(text, _)| text.clone())).flat_map(<[_; 2]>::from).collect();
    let queue = target.queue(Queue::Feed);
    queue.send(&mixed).await;

    bad.sort();
    let letters = target.queue(Queue::FeedDead).letters_with(&word, bad.len()).await;
    let found: Vec<_> = letters.iter().map(|letter| (letter.body.clone(), letter.attribute("field"))).collect();
    assert_eq!(found, bad);
    assert!(letters.iter().all(|letter| !letter.attribute("reason").is_empty()), "{letters:?}");
    for letter in &letters {
        let others = match &letter.body {
            body if *body == twice => "version",
            body if *body == nameless => "$",
            _ => "",
        };
        assert_eq!(letter.attribute("others"), others, "{letter:?}");
    }
    let path = format!("/v1/public/listings?item_id={word}");
    let has_all = |reply: &HttpReply| reply.status == 200 && reply.json()["total"] == bad.len();
    target.get_until(&target.full_key().await, &path, has_all).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn import_keeps_good_lines_and_reports_bad_ones() {
    let target = Target::new().await;
    let word = &target.word();
    let mut good = listing(1, "1.00", "2026-11-20T10:00:00Z", 1);
    (good["id"], good["item_id"]) = (json!(target.uuid(1)), json!(word));
    let mut bad = good.clone();
    bad["price_usd"] = json!("1.234");
    let lines = [
        item(word, "skin", Some("AK-47 | Redline"), 1).to_string(),
        good.to_string(),
        bad.to_string(),
        "not json".to_owned(),
        marketplace(word, true, 1).to_string(),
        item(word, "skin", Some("Older"), 1).to_string(),
        json!({"type": "balance", "account_id": uuid(1), "available_usd": "1", "store_usd": "1", "trade_usd": "1",
            "withdrawable_usd": "0", "held_usd": "0", "escrow_usd": "0", "version": 1})
        .to_string(),
        json!({"type": "event", "id": uuid(1), "event": "order.refunded", "account_id": uuid(1),
            "created_at": "2026-11-20T10:00:00Z", "data": {"order_id": uuid(1), "total_usd": "1"}})
        .to_string(),
    ];
    let run = marketctl(&target.variables, &["--json", "import", "-"], &lines.join("\n")).await;
    assert_eq!(run.code, 1, "{run:?}");
    let report = run.json();
    assert_eq!((&report["applied"], &report["unchanged"]), (&json!(3), &json!(1)));
    let refused: Vec<_> = report["refused"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| (r["line"].as_u64().unwrap(), r["field"].as_str().unwrap()))
        .collect();
    assert_eq!(refused, [(3, "price_usd"), (4, ""), (7, "available_usd"), (8, "type")]);
    assert_eq!(report["refused"][3]["reason"], "events go through the feed queue: use `marketctl feed send`");
    let again = marketctl(&target.variables, &["--json", "import", "-"], &lines[..2].join("\n")).await;
    assert_eq!((again.code, again.json()), (0, json!({"applied": 0, "unchanged": 2, "refused": []})));
    target.wait(2).await;
    let key = target.full_key().await;
    let listings = target.client.get(&key, &format!("/v1/public/listings?item_id={word}")).await;
    assert_eq!(listings.json()["total"], 1);
    let item = target.client.get(&key, &format!("/v1/public/items/{word}")).await;
    assert_eq!(item.json()["name"], "AK-47 | Redline");
}

#[tokio::test(flavor = "multi_thread")]
async fn check_names_what_is_missing() {
    let target = Target::new().await;
    let good = marketctl(&target.variables, &["--json", "check"], "").await;
    assert_eq!((good.code, &good.json()["ok"]), (0, &json!(true)), "{good:?}");
    let checks = good.json()["checks"].as_array().unwrap().clone();
    assert_eq!(checks.len(), 4 + 7 + 1 + 1);
    let keys = format!("{}-keys", stack_name());
    assert_eq!(checks[0], json!({"kind": "table", "name": keys, "ok": true, "error": null}));
    let other = marketctl(&target.variables, &["--stack", "other", "--json", "check"], "").await;
    assert_eq!((other.code, &other.json()["ok"]), (1, &json!(false)));
    for check in other.json()["checks"].as_array().unwrap() {
        assert!(check["error"].as_str().unwrap().contains(check["name"].as_str().unwrap()), "{check}");
    }
}
