//! `GET /v1/public/wallet/balance`.

use feed::ApplyOutcome;
use serde_json::json;
use tests::{Target, balance};
use types::scope::Scope;

const PATH: &str = "/v1/public/wallet/balance";

#[tokio::test(flavor = "multi_thread")]
async fn a_user_sees_their_own_balance_and_zeros_before_the_first() {
    let target = Target::new().await;
    let (rich, poor) = (target.uuid(1), target.uuid(2));
    target.feed(&[balance(rich.into(), "10.00", "5.5", "15.50", 1)]).await;
    let key = async |user: uuid::Uuid| target.key_of(user.into(), &[Scope::WalletRead]).await.0;
    let reply = target.client.get(&key(rich).await, PATH).await;
    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.json(),
        json!({"available_usd": "15.50", "store_usd": "10.00", "trade_usd": "5.50", "withdrawable_usd": "10.00",
            "held_usd": "2.50", "escrow_usd": "0.00"})
    );
    let zeros = target.client.get(&key(poor).await, PATH).await;
    assert_eq!(
        zeros.json(),
        json!({"available_usd": "0.00", "store_usd": "0.00", "trade_usd": "0.00", "withdrawable_usd": "0.00",
            "held_usd": "0.00", "escrow_usd": "0.00"})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_newer_version_changes_it() {
    let target = Target::new().await;
    let user = target.uuid(1);
    let (key, _) = target.key_of(user.into(), &[Scope::WalletRead]).await;
    for (version, store, expected) in
        [(2, "2.00", ApplyOutcome::Changed), (2, "9.00", ApplyOutcome::Unchanged), (1, "1.00", ApplyOutcome::Unchanged)]
    {
        let message = balance(user.into(), store, "0.00", store, version);
        assert_eq!(target.feed_outcomes(&[message]).await, [expected]);
        assert_eq!(target.client.get(&key, PATH).await.json()["store_usd"], "2.00");
    }
}
