//! Keeps out of each function what it does not need: Lambda loads the whole binary before a function can start.
//!
//! `url` is not in the list, because the DynamoDB client itself brings it. Nor is `ring`, which is the TLS provider of
//! every function. Sealing endpoint secrets is a matter of the crate `secrets` alone, and the list has that crate.

use std::collections::BTreeSet;

use tests::packages_of;

use super::crates::manifests;

/// Packages, and the functions that may be built from them. Any other function must do without.
const NEEDED_BY: &[(&[&str], &[&str])] = &[
    (&["aws-sdk-sqs", "queues"], &["ingest", "webhook", "sweep", "account", "pretraffic"]),
    (&["aws-sdk-s3", "objects"], &["catalog", "listings", "compact", "pretraffic"]),
    (&["aws-sdk-secretsmanager", "secrets"], &["webhook", "account", "pretraffic"]),
    (&["zstd", "zstd-sys", "base"], &["catalog", "listings", "compact"]),
    (&["replica"], &["catalog", "listings"]),
    (&["webhooks"], &["ingest", "webhook", "sweep", "account"]),
    (&["guard"], &["webhook", "account"]),
    (&["feed"], &["ingest"]),
    (&["admin"], &["account"]),
    // The generator of the description.
    (&["utoipa"], &["openapi"]),
    // What only operators need.
    (&["repair", "aws-config"], &[]),
];

fn contains(packages: &BTreeSet<String>, name: &str) -> bool {
    packages.iter().any(|package| package.split(' ').next() == Some(name))
}

#[test]
fn no_function_is_built_from_what_it_does_not_need() {
    let mut wrong = Vec::new();
    for function in manifests("functions").into_keys() {
        let packages = packages_of(&function);
        let denied = NEEDED_BY.iter().filter(|(_, needed_by)| !needed_by.contains(&function.as_str()));
        let found = denied.flat_map(|(names, _)| names.iter()).filter(|name| contains(&packages, name));
        wrong.extend(found.map(|found| {
            format!("{function} has {found}; `cargo tree -e normal -p {function} -i {found}` shows through what")
        }));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
