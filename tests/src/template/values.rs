//! Evaluates the template's values as `CloudFormation` does, for a stack with the default name and every parameter's
//! default.
//!
//! Reads the template's YAML, with the short forms of `CloudFormation`'s functions turned into the long ones.

use common::resources::{ALIAS, Resources};
use local::environment::{ACCOUNT_ID, REGION};
use serde_json::{Map, Value, json};
use yaml_serde::Value as Yaml;

use crate::arn;

/// Evaluates the values of a template.
pub(super) struct Values<'t>(pub(super) &'t Value);

impl Values<'_> {
    /// Returns a value with all functions in it evaluated.
    pub(super) fn evaluated(&self, value: &Value) -> Value {
        match value {
            Value::Array(values) => values.iter().map(|value| self.evaluated(value)).collect(),
            Value::Object(entries) => self.function(entries).unwrap_or_else(|| {
                let evaluated = entries.iter().map(|(name, value)| (name.clone(), self.evaluated(value)));
                // A property without a value is none.
                Value::Object(evaluated.filter(|(_, value)| !value.is_null()).collect())
            }),
            scalar => scalar.clone(),
        }
    }

    /// Returns the value of a function, or `None` if this is not one.
    fn function(&self, entries: &Map<String, Value>) -> Option<Value> {
        let (name, argument) = entries.iter().next().filter(|_| entries.len() == 1)?;
        Some(match name.as_str() {
            "Ref" => self.reference(text(argument)),
            "Condition" => self.evaluated(&self.0["Conditions"][text(argument)]),
            "Fn::GetAtt" => json!(self.attribute(text(&argument[0]), text(&argument[1]))),
            "Fn::Sub" => json!(self.substituted(text(argument))),
            "Fn::Join" => json!(self.joined(text(&argument[0]), &argument[1])),
            "Fn::Equals" => json!(self.evaluated(&argument[0]) == self.evaluated(&argument[1])),
            "Fn::EachMemberEquals" => json!(self.is_only(&argument[0], &argument[1])),
            "Fn::Or" => json!(argument.as_array().unwrap().iter().any(|one| self.evaluated(one) == json!(true))),
            "Fn::Not" => json!(self.evaluated(&argument[0]) == json!(false)),
            "Fn::Select" => self.selected(&argument[0], &argument[1]),
            "Fn::If" => {
                let holds = self.evaluated(&self.0["Conditions"][text(&argument[0])]) == json!(true);
                self.evaluated(&argument[if holds { 1 } else { 2 }])
            }
            name if name.starts_with("Fn::") => panic!("{name} is not supported here"),
            _ => return None,
        })
    }

    fn reference(&self, name: &str) -> Value {
        match name {
            "AWS::StackName" => json!(Resources::DEFAULT_STACK),
            "AWS::AccountId" => json!(ACCOUNT_ID),
            "AWS::Partition" => json!("aws"),
            "AWS::Region" => json!(REGION),
            "AWS::URLSuffix" => json!("amazonaws.com"),
            "AWS::NoValue" => Value::Null,
            _ if self.0["Parameters"][name].is_object() => self.parameter(name),
            _ if name.contains('.') => json!(self.made_by_sam(name)),
            _ if !self.0["Resources"][name].is_object() => json!(name),
            _ => json!(self.name(name)),
        }
    }

    /// Returns the ARN of the alias or the version that SAM makes for a function.
    fn made_by_sam(&self, name: &str) -> String {
        let (function, made) = name.split_once('.').unwrap();
        let qualifier = match made {
            "Alias" => ALIAS,
            "Version" => "1",
            _ => return name.to_owned(),
        };
        arn::function(&format!("{}:{qualifier}", self.name(function)))
    }

    /// Returns a parameter's default. A list without members has one empty member, as in `CloudFormation`.
    fn parameter(&self, name: &str) -> Value {
        let parameter = &self.0["Parameters"][name];
        match text(&parameter["Type"]) {
            "CommaDelimitedList" => text(&parameter["Default"]).split(',').collect(),
            _ => parameter["Default"].clone(),
        }
    }

    /// Returns whether a list has no other members than this one.
    fn is_only(&self, list: &Value, member: &Value) -> bool {
        self.evaluated(list).as_array().unwrap().iter().all(|one| one == member)
    }

    fn selected(&self, index: &Value, list: &Value) -> Value {
        let index = usize::try_from(index.as_u64().unwrap()).unwrap();
        self.evaluated(list)[index].clone()
    }

    fn attribute(&self, resource: &str, attribute: &str) -> String {
        let name = self.name(resource);
        match (self.kind(resource), attribute) {
            ("AWS::SQS::Queue", "Arn") => arn::queue(&name),
            ("AWS::S3::Bucket", "Arn") => arn::bucket(&name),
            _ => format!("{resource}.{attribute}"),
        }
    }

    /// Returns a resource's name in AWS, or its name in the template if it has no other.
    fn name(&self, resource: &str) -> String {
        let properties = &self.0["Resources"][resource]["Properties"];
        let mut names =
            ["TableName", "QueueName", "BucketName", "FunctionName", "Name"].into_iter().map(|name| &properties[name]);
        names.find(|name| !name.is_null()).map_or(resource.to_owned(), |name| text(&self.evaluated(name)).to_owned())
    }

    fn kind(&self, resource: &str) -> &str {
        text(&self.0["Resources"][resource]["Type"])
    }

    fn joined(&self, separator: &str, parts: &Value) -> String {
        let parts = self.evaluated(parts);
        let parts = parts.as_array().into_iter().flatten().filter(|part| !part.is_null());
        parts.map(text).collect::<Vec<_>>().join(separator)
    }

    fn substituted(&self, pattern: &str) -> String {
        let Some((before, rest)) = pattern.split_once("${") else { return pattern.to_owned() };
        let (name, after) = rest.split_once('}').unwrap();
        let value = match name.split_once('.') {
            Some((resource, attribute)) => self.attribute(resource, attribute),
            None => match self.reference(name) {
                Value::String(text) => text,
                number => number.to_string(),
            },
        };
        format!("{before}{value}{}", self.substituted(after))
    }
}

/// Returns the names that a value refers to, at any depth.
pub(super) fn references(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(values) => values.iter().flat_map(references).collect(),
        Value::Object(entries) => entries
            .iter()
            .flat_map(|(name, value)| match (name.as_str(), value) {
                ("Ref", Value::String(name)) => vec![name.as_str()],
                ("Fn::Sub", Value::String(pattern)) => {
                    pattern.split("${").skip(1).filter_map(|rest| rest.split('}').next()).collect()
                }
                _ => references(value),
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// Returns a value that must be text.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not text: {value}"))
}

/// Parses the document into JSON, with `!Sub x` as `{"Fn::Sub": "x"}`.
pub(super) fn parse(text: &str) -> Value {
    long(yaml_serde::from_str(text).unwrap())
}

fn long(yaml: Yaml) -> Value {
    match yaml {
        Yaml::Sequence(values) => values.into_iter().map(long).collect(),
        Yaml::Mapping(entries) => {
            let entries = entries.into_iter().map(|(name, value)| (name.as_str().unwrap().to_owned(), long(value)));
            Value::Object(entries.collect())
        }
        Yaml::Tagged(tagged) => {
            let function = tagged.tag.to_string();
            let function = function.trim_start_matches('!');
            let argument = match long(tagged.value) {
                Value::String(path) if function == "GetAtt" => json!(path.split_once('.').unwrap()),
                argument => argument,
            };
            let name = if ["Ref", "Condition"].contains(&function) { function } else { &format!("Fn::{function}") };
            Value::Object(Map::from_iter([(name.to_owned(), argument)]))
        }
        scalar => serde_json::to_value(scalar).unwrap(),
    }
}
