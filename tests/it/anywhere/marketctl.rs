//! `marketctl import` and `marketctl check`.

use serde_json::json;
use tests::{Target, item, listing, marketctl, marketplace, stack_name, uuid};

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
