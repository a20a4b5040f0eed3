//! What keeps data is in a template of its own, which refuses to lose it.

use std::collections::{BTreeMap, BTreeSet};

use local::environment::{ACCOUNT_ID, REGION};
use platform::resources::{Queue, Resources, Table};
use serde_json::Value;
use tests::Template;

use super::names;

/// The properties that name a resource in AWS.
const NAMES: [&str; 5] = ["TableName", "QueueName", "BucketName", "Bucket", "Name"];

/// The pattern of a stack's name, wherever it is checked.
const STACK_NAME: &str = "[a-z]([a-z0-9-]{0,28}[a-z0-9])?";
/// The longest name that S3 allows for a bucket, and the longest of a region.
const LONGEST_BUCKET: usize = 63;
const LONGEST_REGION: &str = "ap-northeast-1";

fn name_in_aws(resource: &Value) -> String {
    let properties = &resource["Properties"];
    let mut named = NAMES.iter().filter_map(|name| properties[name].as_str());
    named.next().unwrap_or_else(|| panic!("no name: {resource}")).to_owned()
}

#[test]
fn the_data_template_holds_exactly_the_projects_resources() {
    let deployed = Template::read().data();
    let mut expected: BTreeSet<_> = Table::ALL.map(|table| names().table(table)).into();
    expected.extend(Queue::ALL.map(|queue| names().queue(queue)));
    expected.extend([names().base_bucket(ACCOUNT_ID, REGION), names().keyring()]);
    assert_eq!(deployed.values().map(name_in_aws).collect::<BTreeSet<_>>(), expected);
    // The bucket has a policy, which bears its name.
    assert_eq!(deployed.len(), expected.len() + 1);
}

/// `RetainExceptOnCreate` keeps a resource in every case but one: if the creation of the stack that was to make it
/// fails.
#[test]
fn nothing_in_the_data_template_is_lost_with_its_stack_or_by_a_replacement() {
    for (id, resource) in Template::read().data() {
        assert_eq!(resource["DeletionPolicy"], "RetainExceptOnCreate", "{id}");
        assert_eq!(resource["UpdateReplacePolicy"], "Retain", "{id}");
    }
}

#[test]
fn tables_can_be_deleted_only_if_the_operator_says_so() {
    for (parameter, protected) in [("true", true), ("false", false)] {
        let template = Template::with_parameters(&[("DeletionProtection", parameter)]);
        let tables = template.resources("AWS::DynamoDB::Table");
        assert_eq!(tables.len(), Table::ALL.len());
        for (id, table) in tables {
            assert_eq!(table["Properties"]["DeletionProtectionEnabled"], protected, "{id}");
        }
    }
}

#[test]
fn the_service_keeps_no_data() {
    let kinds = |resources: BTreeMap<String, Value>| -> BTreeSet<String> {
        resources.values().map(|resource| resource["Type"].as_str().unwrap().to_owned()).collect()
    };
    let keeping = kinds(Template::read().data());
    assert_eq!(keeping.len(), 5, "{keeping:?}");
    let service = kinds(Template::read().service());
    assert!(service.is_disjoint(&keeping), "{service:?}");
}

#[test]
fn the_longest_name_of_a_stack_leaves_room_for_the_rest_of_the_buckets_name() {
    let bucket = Resources::new(&"a".repeat(30)).base_bucket(ACCOUNT_ID, LONGEST_REGION);
    assert_eq!(bucket.len(), LONGEST_BUCKET);
    let checks = [include_str!("../../../infra/data/template.yaml"), include_str!("../../../infra/deploy/settings.py")];
    for check in checks {
        assert!(check.contains(STACK_NAME));
    }
}
