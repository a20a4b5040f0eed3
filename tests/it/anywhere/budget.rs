//! The token bucket through HTTP (specification 8.1 to 8.4).

use futures_util::{StreamExt, stream};
use serde_json::json;
use tests::{HttpReply, Target};
use types::scope::{Scope, Tier};

const PATH: &str = "/v1/public/marketplaces";
/// The budget of the keys that these tests use, in requests per minute.
const LIMIT: u32 = Tier::Free.limit();

/// Sends this many requests with a new key, eight at a time. Returns the key and the answers. A request that had to
/// be repeated may have taken two tokens, so then everything begins again with another key.
async fn crowd(target: &Target, requests: u32) -> (String, Vec<HttpReply>) {
    for _ in 0..5 {
        let key = target.full_key().await;
        target.minute_with(40).await;
        let replies = stream::iter(0..requests).map(|_| target.client.get(&key, PATH));
        let replies: Vec<_> = replies.buffer_unordered(8).collect().await;
        if replies.iter().all(|reply| reply.repeats == 0) {
            return (key, replies);
        }
    }
    panic!("in each of five crowds some request was answered with 503");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_of_requests_is_admitted_up_to_the_limit() {
    let target = Target::new().await;
    let (_, replies) = crowd(&target, LIMIT + 15).await;
    let mut remaining: Vec<u32> = replies.iter().filter(|r| r.status == 200).map(|r| r.rate().1).collect();
    remaining.sort_unstable();
    assert_eq!(remaining, (0..LIMIT).collect::<Vec<_>>());
    for refused in replies.iter().filter(|reply| reply.status != 200) {
        assert_eq!(refused.status, 429);
        target.assert_rate(refused, LIMIT, 0);
        let reset = refused.rate().2;
        assert_eq!((refused.header("retry-after"), refused.header("cache-control")), (&*reset.to_string(), "no-store"));
        let params = json!({"scope": "catalog:read", "limit": LIMIT, "retry_after": reset});
        assert_eq!(refused.json(), json!({"error": {"code": "rate_limits.exceeded", "params": params}}));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_is_full_again_at_the_next_minute() {
    let target = Target::new().await;
    let (key, replies) = crowd(&target, LIMIT + 1).await;
    let refused = replies.iter().find(|reply| reply.status == 429).unwrap();
    target.wait(refused.rate().2.into()).await;
    target.assert_rate(&target.client.get(&key, PATH).await, LIMIT, LIMIT - 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn scopes_have_budgets_of_their_own() {
    let target = Target::new().await;
    let key = target.full_key().await;
    target.minute_with(20).await;
    target.assert_rate(&target.client.get(&key, "/v1/public/catalog").await, LIMIT, LIMIT - 1);
    target.assert_rate(&target.client.get(&key, PATH).await, LIMIT, LIMIT - 2);
    for path in ["/v1/public/listings", "/v1/public/orders", "/v1/public/wallet/balance", "/v1/public/me"] {
        target.assert_rate(&target.client.get(&key, path).await, LIMIT, LIMIT - 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn head_and_304_and_400_and_404_take_a_token_and_403_takes_none() {
    let target = Target::new().await;
    let key = target.key(&[Scope::CatalogRead]).await;
    let own = &format!("/v1/public/catalog?kind={}", target.word());
    let authorization = format!("Bearer {key}");
    target.minute_with(20).await;
    let first = target.client.get(&key, own).await;
    let tag = first.header("etag").to_owned();
    let send = async |method, path, extra: &[(&str, &str)]| {
        let mut headers = vec![("authorization", authorization.as_str())];
        headers.extend_from_slice(extra);
        let reply = target.client.send(method, path, &headers).await;
        (reply.status, reply.rate().1)
    };
    assert_eq!(send("HEAD", own, &[]).await, (200, LIMIT - 2));
    assert_eq!(send("GET", own, &[("if-none-match", &tag)]).await, (304, LIMIT - 3));
    assert_eq!(send("GET", "/v1/public/catalog?page=0", &[]).await, (400, LIMIT - 4));
    assert_eq!(send("GET", "/v1/public/items/none", &[]).await, (404, LIMIT - 5));
    assert_eq!(send("GET", "/v1/public/listings", &[]).await, (403, LIMIT));
    assert_eq!(send("GET", "/v1/public/listings", &[]).await, (403, LIMIT));
    assert_eq!(send("GET", PATH, &[]).await, (200, LIMIT - 6));
}
