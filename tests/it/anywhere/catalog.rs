//! `GET /v1/public/catalog` and `GET /v1/public/items/{id}`.

use serde_json::json;
use tests::{Target, item, marketplace, quote, uuid};

use super::assert_described;

#[tokio::test(flavor = "multi_thread")]
async fn a_page_has_items_by_name_with_every_field() {
    let target = Target::new().await;
    let kind = target.word();
    let id = |name: &str| format!("{kind}-{name}");
    let mut full = item(&id("ak"), &kind, Some("AK-47 | Redline"), 1);
    full["image"] = json!("https://img.example/ak.png");
    let bare = json!({"type": "item", "id": id("nameless"), "kind": kind, "version": 1});
    target.feed(&[bare, item(&id("b"), &kind, Some("★ Bear"), 1), full]).await;
    let reply = target.client.get(&target.full_key().await, &format!("/v1/public/catalog?kind={kind}")).await;
    assert_eq!(reply.status, 200);
    let ak = json!({"id": id("ak"), "kind": kind, "name": "AK-47 | Redline", "slug": id("ak"),
        "image": "https://img.example/ak.png"});
    let bear = json!({"id": id("b"), "kind": kind, "name": "★ Bear", "slug": id("b"), "image": null});
    let nameless = json!({"id": id("nameless"), "kind": kind, "name": null, "slug": null, "image": null});
    assert_eq!(reply.json(), json!({"items": [ak, bear, nameless], "page": 1, "page_size": 50, "total": 3}));
}

#[tokio::test(flavor = "multi_thread")]
async fn search_and_kind_narrow_it() {
    let target = Target::new().await;
    let word = target.word();
    let (skin, sticker) = (format!("{word}_skin"), format!("{word}_sticker"));
    let named =
        |id: &str, kind: &str, name: &str| item(&format!("{word}{id}"), kind, Some(&format!("{name} {word}")), 1);
    target
        .feed(&[
            named("a", &skin, "AK-47 | Redline"),
            named("b", &skin, "AWP | Redline"),
            named("c", &sticker, "Redline Ä"),
            named("d", &skin, "Dragon 龍王 ™"),
            named("e", &sticker, "Straße cafe\u{301}"),
        ])
        .await;
    let key = target.full_key().await;
    for (query, expected) in [
        (format!("q={word}"), vec!["a", "b", "d", "c", "e"]),
        (format!("q=REDLINE%20{word}"), vec!["a", "b"]),
        (format!("q=redline&kind={skin}"), vec!["a", "b"]),
        (format!("q=REDLINE&kind={sticker}"), vec!["c"]),
        (format!("q=ak-47%20|%20&kind={skin}"), vec!["a"]),
        (format!("q=ak-47+|+&kind={skin}"), vec!["a"]),
        (format!("q=%C3%A4%20{word}"), vec!["c"]),
        (format!("q=A%CC%88%20{word}"), vec!["c"]),
        (format!("q=redline%20a&kind={sticker}"), vec![]),
        (format!("q=STRASSE%20CAF%C3%89%20{word}"), vec!["e"]),
        (format!("q=stra%C3%9Fe%20cafe%CC%81%20{word}"), vec!["e"]),
        (format!("q=%E9%BE%8D%E7%8E%8B&kind={skin}"), vec!["d"]),
        (format!("q=%E2%84%A2+{}", word.to_uppercase()), vec!["d"]),
        (format!("q=%20redline%20{word}"), vec!["a", "b"]),
        (format!("q=%25&kind={skin}"), vec![]),
        (format!("q=*&kind={skin}"), vec![]),
        (format!("kind={sticker}"), vec!["c", "e"]),
        (format!("kind={word}"), vec![]),
    ] {
        let reply = target.client.get(&key, &format!("/v1/public/catalog?{query}")).await;
        assert_eq!(
            (reply.ids(), &reply.json()["total"]),
            (expected.iter().map(|id| format!("{word}{id}")).collect(), &json!(expected.len())),
            "{query}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_comes_with_its_variants() {
    let target = Target::new().await;
    let id = format!("ak-47_red.line~{}", target.word());
    target.feed(&[item(&id, "skin", Some("AK-47 | Redline"), 1)]).await;
    let reply = target.client.get(&target.full_key().await, &format!("/v1/public/items/{id}")).await;
    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.json(),
        json!({
            "id": id, "kind": "skin", "name": "AK-47 | Redline", "slug": id, "image": null,
            "variants": [{"variant_id": uuid(7), "wear": "Field-Tested", "stattrak": false,
                "market_hash_name": "AK-47 | Redline"}],
        })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_variant_comes_with_its_prices_if_the_request_includes_them() {
    let target = Target::new().await;
    let (id, shop) = (target.word(), format!("{}_shop", target.word()));
    let variant =
        |number| json!({"variant_id": target.uuid(number), "wear": null, "stattrak": false, "market_hash_name": null});
    let mut two = item(&id, "skin", Some("AK-47 | Redline"), 1);
    two["variants"] = json!([variant(1), variant(2)]);
    let asks = quote(target.uuid(1), &shop, &["12.00", "11.90", "13.00"], &target.ago(3_600));
    target.feed(&[marketplace(&shop, true, 1), two, asks]).await;
    let key = target.full_key().await;
    let (plain, asked) = (format!("/v1/public/items/{id}"), format!("/v1/public/items/{id}?include=prices"));
    target.wait_for_marketplaces().await;
    let prices = target.client.get(&key, &format!("/v1/public/prices/{}", target.uuid(1))).await.json();
    let with = target.client.get(&key, &asked).await;

    let variants = with.json()["variants"].clone();
    assert_eq!(variants[0]["prices"], prices);
    assert_eq!(variants[1].get("prices"), Some(&json!(null)));
    let document = target.client.send("GET", "/v1/openapi.json", &[]).await.json();
    assert_described(&document, &asked, &with);

    let without = target.client.get(&key, &plain).await;
    assert_eq!(without.json()["variants"], json!([variant(1), variant(2)]));
    assert_ne!(with.header("etag"), without.header("etag"));
    let authorization = format!("Bearer {key}");
    let headers = [("authorization", authorization.as_str()), ("if-none-match", with.header("etag"))];
    assert_eq!(target.client.send("GET", &asked, &headers).await.status, 304);
    assert_eq!(target.client.send("GET", &plain, &headers).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_item_is_404_with_the_id_asked_for() {
    let target = Target::new().await;
    let gone = format!("{}-gone", target.word());
    let removal = json!({"type": "item", "id": gone, "removed": true, "version": 2});
    target.feed(&[item(&gone, "skin", None, 1)]).await;
    target.feed(&[removal]).await;
    let key = target.full_key().await;
    for (path, id) in [(gone.as_str(), gone.as_str()), ("none", "none"), ("a%20b", "a b"), ("%E2%98%85", "★")] {
        let reply = target.client.get(&key, &format!("/v1/public/items/{path}")).await;
        assert_eq!(reply.status, 404, "{path}");
        assert_eq!(reply.json(), json!({"error": {"code": "items.not_found", "params": {"id": id}}}));
        assert_eq!(reply.header("cache-control"), "no-store");
    }
}
