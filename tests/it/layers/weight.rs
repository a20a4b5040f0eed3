//! Keeps out of each function what it does not need: Lambda loads the whole binary before a function can start.
//!
//! `url` is in none of the lists, because the DynamoDB client itself brings it. Nor is `ring`, which is the TLS provider
//! of every function. Sealing endpoint secrets is a matter of the crate `secrets` alone, and the lists have that crate.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use tests::packages_of;

use super::document;

const S3: &str = "aws-sdk-s3";
const SQS: &str = "aws-sdk-sqs";
const SECRETS_MANAGER: &str = "aws-sdk-secretsmanager";

/// Functions, and packages that none of them may be built from.
const DENIED: &[(&[&str], &[&str])] = &[
    (
        &["me", "item", "prices", "marketplaces", "orders", "balance", "openapi"],
        &[
            SQS,
            S3,
            SECRETS_MANAGER,
            "zstd",
            "zstd-sys",
            "queues",
            "objects",
            "secrets",
            "guard",
            "webhooks",
            "base",
            "replica",
        ],
    ),
    (&["catalog", "listings"], &[SQS, SECRETS_MANAGER, "queues", "secrets", "guard", "webhooks"]),
    (&["compact"], &[SQS, SECRETS_MANAGER, "queues", "secrets", "guard", "webhooks", "replica", "api", "auth"]),
    (
        &["ingest", "sweep"],
        &[S3, SECRETS_MANAGER, "zstd", "zstd-sys", "objects", "secrets", "guard", "base", "replica", "api", "auth"],
    ),
    (&["pretraffic"], &["zstd", "zstd-sys", "guard", "webhooks", "base", "replica", "market", "accounts", "feed"]),
    (&["account"], &[S3, "zstd", "zstd-sys", "objects", "base", "replica", "market", "accounts", "feed", "api"]),
    (
        &["webhook"],
        &[S3, "zstd", "zstd-sys", "objects", "base", "replica", "market", "accounts", "feed", "api", "auth"],
    ),
];

/// What no function may be built from: what only operators need.
const DENIED_EVERYWHERE: &[&str] = &["repair", "aws-config"];
/// The only function that may be built from what operators and owners do.
const WITH_ADMIN: &str = "account";

/// Returns the packages that each function is built from, each as its name and its version.
fn functions() -> &'static BTreeMap<String, BTreeSet<String>> {
    static FUNCTIONS: OnceLock<BTreeMap<String, BTreeSet<String>>> = OnceLock::new();
    FUNCTIONS.get_or_init(|| {
        let names = document::functions().into_keys();
        names.map(|name| (name.clone(), packages_of(&name))).collect()
    })
}

fn contains(packages: &BTreeSet<String>, name: &str) -> bool {
    packages.iter().any(|package| package.split(' ').next() == Some(name))
}

#[test]
fn no_function_is_built_from_what_it_does_not_need() {
    let mut wrong = Vec::new();
    for (function, packages) in functions() {
        let list = DENIED.iter().find(|(functions, _)| functions.contains(&function.as_str()));
        let (_, denied) = list.unwrap_or_else(|| panic!("{function} has no list"));
        let admin = (function != WITH_ADMIN).then_some(&"admin");
        let all = denied.iter().chain(DENIED_EVERYWHERE).chain(admin);
        let found = all.filter(|denied| contains(packages, denied));
        wrong.extend(found.map(|found| {
            format!("{function} has {found}; `cargo tree -e normal -p {function} -i {found}` shows through what")
        }));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_the_description_brings_its_generator() {
    let with_generator = functions().iter().filter(|(_, packages)| contains(packages, "utoipa"));
    assert_eq!(with_generator.map(|(function, _)| function).collect::<Vec<_>>(), ["openapi"]);
}

#[test]
fn the_table_counts_the_packages_of_each_function() {
    let mut wrong = Vec::new();
    for (function, row) in document::functions() {
        let packages = functions()[&function].len();
        if row.packages != packages {
            wrong.push(format!("write {packages} in the row of `{function}`, in place of {}", row.packages));
        }
    }
    assert!(wrong.is_empty(), "ARCHITECTURE.md has other numbers of packages:\n{}", wrong.join("\n"));
}
