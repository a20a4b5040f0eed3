//! Where a key's limit comes from (specification 8.1), and the copy of it that the release before reads.

use std::time::Duration;

use admin::keys::{AdminError, KeyUpdate, LimitChange, MAX_LIMIT, NewKey};
use auth::KeyStatus;
use futures_util::future::join_all;
use tests::{Stack, set_limit_copy, stored_key_row};
use types::scope::{Scope, Tier};

const PATH: &str = "/v1/public/marketplaces";
const ME: &str = "/v1/public/me";
const LIMIT: u32 = Tier::Free.limit();

/// Returns the limit that the release before would apply.
async fn limit_copy(stack: &Stack, key: &str) -> u32 {
    stored_key_row(stack, key).await["limit"].as_n().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_the_release_before_follows_its_tier() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    for copy in [1, 10 * LIMIT] {
        let key = stack.full_key().await;
        set_limit_copy(&stack, &key, copy).await;
        assert!(!stored_key_row(&stack, &key).await.contains_key("limit_override"));
        for left in (0..LIMIT).rev() {
            let reply = running.client.get(&key, PATH).await;
            assert_eq!((reply.status, reply.rate()), (200, (LIMIT, left, 60)));
        }
        let refused = running.client.get(&key, PATH).await;
        assert_eq!((refused.status, refused.rate()), (429, (LIMIT, 0, 60)));
        assert_eq!(running.client.get(&key, ME).await.json()["rate_limit_per_minute"], LIMIT);
    }
}

/// The release before runs beside this one during a deployment, and again after a rollback.
#[tokio::test(flavor = "multi_thread")]
async fn the_release_before_finds_the_limit_that_applies() {
    let stack = Stack::new().await;
    let admin = stack.admin.keys();
    let (key, record) = stack.key_of(tests::uuid(1).into(), &[Scope::CatalogRead]).await;
    assert_eq!((record.limit, limit_copy(&stack, &key).await), (LIMIT, LIMIT));

    let tier = |tier| KeyUpdate { tier: Some(tier), ..KeyUpdate::default() };
    let limit = |limit| KeyUpdate { limit: Some(limit), ..KeyUpdate::default() };
    set_limit_copy(&stack, &key, 1).await;
    for (update, expected) in [
        (KeyUpdate { name: Some("bot".to_owned()), ..KeyUpdate::default() }, LIMIT),
        (tier(Tier::Pro), Tier::Pro.limit()),
        (limit(LimitChange::Own(7)), 7),
        (tier(Tier::Business), 7),
        (limit(LimitChange::Own(0)), 0),
        (limit(LimitChange::FollowTier), Tier::Business.limit()),
        (limit(LimitChange::Own(MAX_LIMIT)), MAX_LIMIT),
    ] {
        let change = format!("{update:?}");
        let changed = admin.update(record.key_id, update).await.unwrap();
        assert_eq!((changed.limit, limit_copy(&stack, &key).await), (expected, expected), "{change}");
    }
    let rotated = admin.rotate(record.key_id, Duration::ZERO).await.unwrap();
    let copy = limit_copy(&stack, rotated.text.reveal()).await;
    assert_eq!((rotated.record.limit, copy), (MAX_LIMIT, MAX_LIMIT));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_not_created_with_a_limit_that_no_change_would_give_it() {
    let stack = Stack::new().await;
    let admin = stack.admin.keys();
    let user_id = tests::uuid(1).into();
    let with_limit = |limit| NewKey {
        user_id,
        name: None,
        tier: Tier::Free,
        limit_override: Some(limit),
        scopes: [Scope::CatalogRead].into(),
        expires_at: None,
    };
    let refused = admin.create(with_limit(MAX_LIMIT + 1)).await;
    assert!(matches!(refused, Err(AdminError::Invalid { field: "limit", .. })), "{refused:?}");
    let (_, record) = admin.create(with_limit(MAX_LIMIT)).await.unwrap();
    assert_eq!(record.limit, MAX_LIMIT);
    assert_eq!(admin.list(user_id).await.unwrap().readable, [record]);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_a_key_at_the_same_moment_all_stay() {
    let stack = Stack::new().await;
    let admin = stack.admin.keys();
    let (_, record) = stack.key_of(tests::uuid(1).into(), &[Scope::CatalogRead]).await;
    for (round, tier) in (1..=10).zip([Tier::Pro, Tier::Business].into_iter().cycle()) {
        let name = format!("bot {round}");
        let changes = [
            KeyUpdate { tier: Some(tier), ..KeyUpdate::default() },
            KeyUpdate { limit: Some(LimitChange::Own(round)), ..KeyUpdate::default() },
            KeyUpdate { name: Some(name.clone()), ..KeyUpdate::default() },
        ];
        let changes = changes.map(|change| admin.update(record.key_id, change));
        assert!(join_all(changes).await.iter().all(Result::is_ok));
        let [key] = admin.list(record.user_id).await.unwrap().readable.try_into().unwrap();
        assert_eq!((key.tier, key.limit_override, key.limit, key.name), (tier, Some(round), round, Some(name)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_beside_a_revocation_leaves_the_key_revoked() {
    let stack = Stack::new().await;
    let admin = stack.admin.keys();
    for user in 1..=10 {
        let (_, record) = stack.key_of(tests::uuid(user).into(), &[Scope::CatalogRead]).await;
        let change = KeyUpdate { limit: Some(LimitChange::Own(7)), ..KeyUpdate::default() };
        let (changed, revoked) = tokio::join!(admin.update(record.key_id, change), admin.revoke(record.key_id));
        assert!(matches!(&changed, Ok(_) | Err(AdminError::NotActive(_))), "{changed:?}");
        revoked.unwrap();
        let [key] = admin.list(record.user_id).await.unwrap().readable.try_into().unwrap();
        assert_eq!((key.status, key.limit_override), (KeyStatus::Revoked, changed.ok().map(|_| 7)));
    }
}
