//! That the template gives functions nothing which they do not use. That it gives them all that they use, every
//! test sees to that makes one do something.

mod deliveries;
mod feed;
mod requests;

use std::collections::BTreeSet;

use tests::{Grant, Template};

/// What functions, by their names, have made use of.
type Used = BTreeSet<(String, Grant)>;

#[tokio::test(flavor = "multi_thread")]
async fn functions_are_given_nothing_that_they_do_not_use() {
    let (requests, feed, deliveries) = tokio::join!(requests::made(), feed::applied(), deliveries::made());
    let used: Used = [requests, feed, deliveries].into_iter().flatten().collect();
    let mut surplus = Vec::new();
    for (name, function) in &Template::read().functions {
        for grant in &function.grants {
            if !used.contains(&(name.clone(), grant.clone())) {
                surplus.push(format!("{name} has no use for {grant}, which template.yaml gives it"));
            }
        }
    }
    assert!(surplus.is_empty(), "{}", surplus.join("\n"));
}
