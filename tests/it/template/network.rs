//! The network from which `webhook` sends, if the operator gives it one.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tests::{Template, arn};

const SUBNETS: &str = "WebhookSubnetIds";
const GROUPS: &str = "WebhookSecurityGroupIds";

/// Returns the networks of the functions that are in one.
fn networks(template: &Template) -> BTreeMap<&str, &Value> {
    let networks = template.functions.iter().map(|(name, function)| (name.as_str(), &function.properties["VpcConfig"]));
    networks.filter(|(_, network)| !network.is_null()).collect()
}

#[test]
fn no_function_is_in_a_network_by_default() {
    assert_eq!(networks(Template::read()), BTreeMap::new());
}

/// The network has no IPv6, because a VPC's own IPv6 addresses are public ones to the address guard.
#[test]
fn subnets_and_security_groups_put_webhook_alone_into_a_network_without_ipv6() {
    let template = Template::with_parameters(&[(SUBNETS, "subnet-1,subnet-2"), (GROUPS, "sg-1")]);
    let network = json!({"SubnetIds": ["subnet-1", "subnet-2"], "SecurityGroupIds": ["sg-1"]});
    assert_eq!(networks(&template), BTreeMap::from([("webhook", &network)]));
}

#[test]
fn subnets_and_security_groups_are_given_together_or_not_at_all() {
    for (subnets, groups, objection) in [
        ("", "", None),
        ("subnet-1", "sg-1", None),
        ("subnet-1", "", Some("WebhookSubnetIds needs WebhookSecurityGroupIds")),
        ("", "sg-1", Some("WebhookSecurityGroupIds needs WebhookSubnetIds")),
    ] {
        let template = Template::with_parameters(&[(SUBNETS, subnets), (GROUPS, groups), ("Alarms", "off")]);
        assert_eq!(template.objections(), objection.as_slice(), "{subnets:?} {groups:?}");
    }
}

/// SAM adds the permissions to make network interfaces by itself. Lambda needs them, the function's own code does not.
#[test]
fn the_code_of_webhook_may_not_use_the_permissions_that_make_its_network_interfaces() {
    let properties = &Template::read().functions["webhook"].properties;
    let statements = properties["Policies"][0]["Statement"].as_array().unwrap();
    let denied: Vec<&Value> = statements.iter().filter(|statement| statement["Effect"] == "Deny").collect();
    let function = properties["FunctionName"].as_str().unwrap();
    let own_calls = [function, &format!("{function}:*")].map(arn::function);
    let expected = json!({
        "Effect": "Deny",
        "Action": "ec2:*",
        "Resource": "*",
        "Condition": {"ArnLike": {"lambda:SourceFunctionArn": own_calls}},
    });
    assert_eq!(denied, [&expected]);
}
