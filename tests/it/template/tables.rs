//! Compares the template's tables with the project's.

use platform::resources::{Index, PARTITION_KEY, SORT_KEY, TTL, Table};
use serde_json::{Value, json};

use super::{assert_same, deployed, names};

#[test]
fn the_template_has_the_projects_tables_with_keys_and_indexes() {
    let mut deployed = deployed("AWS::DynamoDB::Table", "TableName");
    for table in Table::ALL {
        let name = names().table(table);
        assert_same(&name, deployed.remove(&name).unwrap_or_default(), expected(table));
    }
    assert!(deployed.is_empty(), "{deployed:?}");
}

fn expected(table: Table) -> Value {
    let mut properties = json!({
        "TableName": names().table(table),
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": keys(PARTITION_KEY, SORT_KEY),
        "TimeToLiveSpecification": {"AttributeName": TTL, "Enabled": true},
        "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": true},
        "SSESpecification": {"SSEEnabled": true},
        "DeletionProtectionEnabled": true,
    });
    let mut attributes = vec![attribute(PARTITION_KEY, "S"), attribute(SORT_KEY, "S")];
    for index in table.indexes() {
        for key in [attribute(index.partition_key, "S"), attribute(index.sort_key, "N")] {
            if !attributes.contains(&key) {
                attributes.push(key);
            }
        }
    }
    properties["AttributeDefinitions"] = attributes.into();
    let indexes: Vec<Value> = table.indexes().iter().map(expected_index).collect();
    if !indexes.is_empty() {
        properties["GlobalSecondaryIndexes"] = indexes.into();
    }
    properties
}

fn expected_index(index: &Index) -> Value {
    json!({
        "IndexName": index.name,
        "KeySchema": keys(index.partition_key, index.sort_key),
        "Projection": {"ProjectionType": "KEYS_ONLY"},
    })
}

fn attribute(name: &str, kind: &str) -> Value {
    json!({"AttributeName": name, "AttributeType": kind})
}

fn keys(partition_key: &str, sort_key: &str) -> Value {
    json!([{"AttributeName": partition_key, "KeyType": "HASH"}, {"AttributeName": sort_key, "KeyType": "RANGE"}])
}
