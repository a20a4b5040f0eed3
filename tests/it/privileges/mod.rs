//! The template gives functions nothing that they do not use: these tests make each function do everything that it
//! does. That it gives them everything they use is checked by every test that runs a function.

mod account;
mod deliveries;
mod feed;
mod requests;
mod rollouts;

use std::collections::BTreeSet;

use tests::{FunctionGrant, Template};

/// What each function has used.
type Used = BTreeSet<(String, FunctionGrant)>;

#[tokio::test(flavor = "multi_thread")]
async fn functions_are_given_nothing_that_they_do_not_use() {
    let (requests, feed, deliveries, account, rollouts) =
        tokio::join!(requests::made(), feed::applied(), deliveries::made(), account::made(), rollouts::made());
    let used: Used = [requests, feed, deliveries, account, rollouts].into_iter().flatten().collect();
    let mut surplus = Vec::new();
    for (name, function) in &Template::read().functions {
        for grant in &function.grants {
            if !used.contains(&(name.clone(), grant.clone())) {
                surplus.push(format!("{name} does not use {grant}, which template.yaml gives it"));
            }
        }
    }
    assert!(surplus.is_empty(), "{}", surplus.join("\n"));
}
