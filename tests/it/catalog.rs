//! `GET /v1/public/catalog`.

use serde_json::json;
use tests::{Stack, item};

#[tokio::test(flavor = "multi_thread")]
async fn a_page_has_items_by_name_with_every_field() {
    let stack = Stack::new().await;
    let mut full = item("ak-47-redline", "skin", Some("AK-47 | Redline"), 1);
    full["image"] = json!("https://img.example/ak.png");
    let bare = json!({"type": "item", "id": "nameless", "kind": "case", "version": 1});
    stack.feed(&[bare, item("b", "sticker", Some("★ Bear"), 1), full]).await;
    let running = stack.instance().await;
    let reply = running.client.get(&stack.full_key().await, "/v1/public/catalog").await;
    assert_eq!(reply.status, 200);
    let ak = json!({"id": "ak-47-redline", "kind": "skin", "name": "AK-47 | Redline", "slug": "ak-47-redline",
        "image": "https://img.example/ak.png"});
    let bear = json!({"id": "b", "kind": "sticker", "name": "★ Bear", "slug": "b", "image": null});
    let nameless = json!({"id": "nameless", "kind": "case", "name": null, "slug": null, "image": null});
    assert_eq!(reply.json(), json!({"items": [ak, bear, nameless], "page": 1, "page_size": 50, "total": 3}));
}

#[tokio::test(flavor = "multi_thread")]
async fn search_and_kind_narrow_it() {
    let stack = Stack::new().await;
    stack
        .feed(&[
            item("a", "skin", Some("AK-47 | Redline"), 1),
            item("b", "skin", Some("AWP | Redline"), 1),
            item("c", "sticker", Some("Redline Ä"), 1),
            item("d", "skin", Some("Dragon 龍王 ™"), 1),
        ])
        .await;
    let running = stack.instance().await;
    let key = stack.full_key().await;
    for (query, expected) in [
        ("q=REDLINE", vec!["a", "b", "c"]),
        ("q=redline&kind=skin", vec!["a", "b"]),
        ("q=ak-47%20|%20", vec!["a"]),
        ("q=ak-47+|+", vec!["a"]),
        ("q=%C3%A4", vec!["c"]),
        ("q=%E9%BE%8D%E7%8E%8B", vec!["d"]),
        ("q=%E2%84%A2", vec!["d"]),
        ("q=%20redline", vec!["a", "b"]),
        ("q=%25", vec![]),
        ("q=*", vec![]),
        ("kind=sticker", vec!["c"]),
        ("kind=agent", vec![]),
    ] {
        let reply = running.client.get(&key, &format!("/v1/public/catalog?{query}")).await;
        assert_eq!(
            (reply.ids(), &reply.json()["total"]),
            (expected.iter().map(|id| (*id).to_owned()).collect(), &json!(expected.len())),
            "{query}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn walking_all_pages_yields_each_item_once() {
    let stack = Stack::new().await;
    let items: Vec<_> =
        (0..23).map(|n| item(&format!("i{n:02}"), "skin", Some(&format!("Name {}", n / 3)), 1)).collect();
    stack.feed(&items).await;
    let running = stack.instance().await;
    let key = stack.full_key().await;
    let mut walked = Vec::new();
    for page in 1..=5 {
        let reply = running.client.get(&key, &format!("/v1/public/catalog?page={page}&page_size=5")).await;
        assert_eq!(
            (&reply.json()["total"], &reply.json()["page"], &reply.json()["page_size"]),
            (&json!(23), &json!(page), &json!(5))
        );
        walked.extend(reply.ids());
    }
    assert_eq!(walked, (0..23).map(|n| format!("i{n:02}")).collect::<Vec<_>>());
    let past = running.client.get(&key, "/v1/public/catalog?page=6&page_size=5").await;
    assert_eq!(past.json(), json!({"items": [], "page": 6, "page_size": 5, "total": 23}));
}
