//! What headers tell a client beyond the body: its budget, and the state that an answer was made from.

use serde_json::json;
use tests::{HttpReply, Target, item, listing, marketplace, quote};
use types::scope::{Budget, Scope, Tier};

use crate::access::PATHS;

const HOUR_SECONDS: i64 = 3_600;
const LIMIT: u32 = Tier::Free.limit();

/// Checks that both headers say of this budget what `X-RateLimit-*` say.
fn assert_told(reply: &HttpReply, budget: Budget) {
    let ((limit, remaining, reset), name) = (reply.rate(), budget.as_str());
    assert_eq!(reply.header("ratelimit-policy"), format!("\"{name}\";q={limit};w=60"), "{reply:?}");
    assert_eq!(reply.header("ratelimit"), format!("\"{name}\";r={remaining};t={reset}"), "{reply:?}");
}

fn assert_untold(reply: &HttpReply, status: u16) {
    assert_eq!(reply.status, status);
    assert!(!reply.headers.contains_key("ratelimit") && !reply.headers.contains_key("ratelimit-policy"), "{reply:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_is_named_after_its_scope_and_told_with_every_answer_to_a_key() {
    let target = Target::new().await;
    let key = target.full_key().await;
    let authorization = format!("Bearer {key}");
    for (path, scope) in PATHS {
        let budget = scope.map_or(Budget::Me, Budget::Scope);
        let reply = target.client.get(&key, path).await;
        assert_eq!(reply.rate().0, LIMIT, "{path}");
        assert_told(&reply, budget);
        let unchanged = [("authorization", authorization.as_str()), ("if-none-match", "*")];
        assert_told(&target.client.send("HEAD", path, &unchanged).await, budget);
        let invalid = target.client.get(&key, &format!("{path}?nonsense=1")).await;
        assert_eq!(invalid.status, 400);
        assert_told(&invalid, budget);
    }
    let poor = target.key(&[Scope::OrdersRead]).await;
    let refused = target.client.get(&poor, "/v1/public/catalog").await;
    assert_eq!(refused.status, 403);
    assert_told(&refused, Budget::Scope(Scope::CatalogRead));
    target.minute_with(40).await;
    for _ in 0..LIMIT {
        target.client.get(&poor, "/v1/public/orders").await;
    }
    let spent = target.client.get(&poor, "/v1/public/orders").await;
    assert_eq!((spent.status, spent.rate().1), (429, 0));
    assert_told(&spent, Budget::Scope(Scope::OrdersRead));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_checked_key_no_budget_is_told() {
    let target = Target::new().await;
    for (path, status) in [
        ("/v1/public/me", 401),
        ("/v1/public/catalog", 401),
        ("/nowhere", 404),
        ("/v1/openapi.json", 200),
        ("/docs", 200),
    ] {
        assert_untold(&target.client.send("GET", path, &[]).await, status);
    }
    assert_untold(&target.client.send("POST", "/v1/public/me", &[]).await, 405);
}

/// The same date as HTTP has it, cut to the second.
fn http_date(rfc3339: &str) -> String {
    let at: types::timestamp::Timestamp = rfc3339.parse().unwrap();
    let since_epoch = std::time::Duration::from_secs(at.seconds().try_into().unwrap());
    httpdate::fmt_http_date(std::time::SystemTime::UNIX_EPOCH + since_epoch)
}

#[tokio::test(flavor = "multi_thread")]
async fn prices_carry_the_date_of_the_newest_quote_and_are_304_until_there_is_a_newer_one() {
    let target = Target::new().await;
    let [one, two] = ["1", "2"].map(|name| format!("{}_{name}", target.word()));
    let [oldest, older, newest] = [3, 2, 1].map(|hours| target.ago(hours * HOUR_SECONDS));
    let quoted = |place: &str, at: &str| quote(target.uuid(7), place, &["5.00"], at);
    target.feed(&[marketplace(&one, true, 1), marketplace(&two, true, 1)]).await;
    target.wait_for_marketplaces().await;
    target.feed(&[quoted(&one, &oldest), quoted(&two, &older)]).await;
    let key = target.full_key().await;
    let path = &format!("/v1/public/prices/{}", target.uuid(7));
    let first = target.client.get(&key, path).await;
    assert_eq!((first.status, first.header("last-modified")), (200, http_date(&older).as_str()));

    let authorization = format!("Bearer {key}");
    let ask = async |condition: &[(&str, &str)]| {
        let headers = [&[("authorization", authorization.as_str())], condition].concat();
        let reply = target.client.send("GET", path, &headers).await;
        (reply.status, reply.bytes.len(), reply.header("last-modified").to_owned())
    };
    let (date, before) = (http_date(&older), http_date(&oldest));
    assert_eq!(ask(&[("if-modified-since", &date)]).await, (304, 0, date.clone()));
    assert_eq!(ask(&[("if-modified-since", &before)]).await.0, 200);
    assert_eq!(ask(&[("if-modified-since", "yesterday")]).await.0, 200);
    let another_tag = [("if-modified-since", date.as_str()), ("if-none-match", "\"another\"")];
    assert_eq!(ask(&another_tag).await.0, 200, "the tag decides");
    target.feed(&[quoted(&one, &newest)]).await;
    let (status, _, now) = ask(&[("if-modified-since", &date)]).await;
    assert_eq!((status, now), (200, http_date(&newest)));
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_one_state_carry_one_position_in_the_log_and_those_of_the_next_a_later_one() {
    let target = Target::new().await;
    let key = target.full_key().await;
    let (kind, other) = (target.word(), format!("{}-other", target.word()));
    let items = ["a", "b"].map(|name| item(&format!("{kind}-{name}"), &kind, Some(name), 1));
    target.feed(&items).await;
    let mut sold = listing(1, "10.00", "2026-11-20T10:00:00Z", 1);
    (sold["id"], sold["item_id"]) = (json!(target.uuid(1)), json!(kind));
    target.feed(&[sold.clone()]).await;
    sold["id"] = json!(target.uuid(2));
    sold["item_id"] = json!(other);
    for (path, change) in [
        (format!("/v1/public/catalog?kind={kind}"), item(&other, "another", Some("c"), 1)),
        (format!("/v1/public/listings?item_id={kind}"), sold),
    ] {
        let position = |reply: &HttpReply| reply.header("x-log-position").parse::<u64>().unwrap();
        let first = target.client.get(&key, &format!("{path}&page_size=1")).await;
        let second = target.client.get(&key, &format!("{path}&page_size=1&page=2")).await;
        // Beside other tests the state may move on between two requests.
        assert!(target.is_shared() || position(&first) == position(&second), "{first:?} {second:?}");
        target.feed(&[change]).await;
        // By then every instance answers from a state that has the change.
        target.wait(2).await;
        let authorization = format!("Bearer {key}");
        let condition = [("authorization", authorization.as_str()), ("if-none-match", first.header("etag"))];
        let later = target.client.send("GET", &format!("{path}&page_size=1"), &condition).await;
        assert_eq!(later.status, 304, "the page itself has not changed");
        assert!(position(&later) > position(&first), "{path}");
    }
}
