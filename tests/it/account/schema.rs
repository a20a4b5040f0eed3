//! The JSON Schema of commands and answers, held against the function.

use std::collections::BTreeSet;

use account::CommandName;
use admin::webhooks::Recoverable;
use common::event::EventKind;
use common::scope::{Scope, Tier};
use jsonschema::Validator;
use serde_json::{Map, Value, json};
use tests::webhooks_cli::OWNER;
use webhooks::delivery::{Failure, Status};
use webhooks::endpoint::DisabledReason;

use super::{Settings, event};

const SCHEMA: &str = include_str!("../../../functions/account/schema.json");

fn schema() -> Value {
    serde_json::from_str(SCHEMA).unwrap()
}

/// Returns the validator of one definition.
fn definition(name: &str) -> Validator {
    let schema = schema();
    let reference = format!("#/$defs/{name}");
    let schema = json!({"$schema": schema["$schema"], "$defs": schema["$defs"], "$ref": reference});
    jsonschema::validator_for(&schema).unwrap()
}

fn assert_valid(validator: &Validator, document: &Value) {
    let problems: Vec<_> = validator.iter_errors(document).map(|error| error.to_string()).collect();
    assert!(problems.is_empty(), "{problems:?} in {document}");
}

/// Returns the examples of a command's parameters.
fn examples(command: CommandName) -> Vec<Value> {
    schema()["$defs"][command.as_str()]["examples"].as_array().unwrap().clone()
}

#[test]
fn the_schema_has_every_command_and_no_other() {
    let schema = schema();
    assert_eq!(schema["properties"]["command"]["enum"], json!(CommandName::ALL));
    let definitions: BTreeSet<&String> = schema["$defs"].as_object().unwrap().keys().collect();
    let dotted: BTreeSet<String> =
        definitions.into_iter().filter(|name| name.contains('.')).map(|name| name.replace(".result", "")).collect();
    assert_eq!(dotted, CommandName::ALL.map(|command| command.to_string()).into());
    assert_eq!(schema["allOf"].as_array().unwrap().len(), CommandName::ALL.len());
    let codes = schema["$defs"]["error"]["properties"]["code"]["oneOf"].as_array().unwrap();
    let codes: Vec<&Value> = codes.iter().map(|code| &code["const"]).collect();
    assert_eq!(json!(codes), json!(admin::ErrorCode::ALL));
}

#[test]
fn the_schemas_lists_are_those_of_the_service() {
    let definitions = schema()["$defs"].take();
    for (name, members) in [
        ("scope", json!(Scope::ALL)),
        ("event", json!(EventKind::ALL)),
        ("tier", json!(Tier::ALL)),
        ("status", json!(Status::ALL)),
        ("recoverable", json!(Recoverable::ALL)),
        ("failure", json!(Failure::ALL)),
        ("disabled_reason", json!(DisabledReason::ALL)),
    ] {
        assert_eq!(definitions[name]["enum"], members, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn examples_are_valid_and_wrong_ones_are_refused_by_schema_and_function() {
    let (settings, validator) = (Settings::new().await, jsonschema::validator_for(&schema()).unwrap());
    for command in CommandName::ALL {
        for example in examples(command) {
            assert_valid(&validator, &event(OWNER, command, &example));
            let answer = settings.answer(event(OWNER, command, &example)).await;
            assert_ne!(answer["error"]["code"], "invalid", "{command} {example}: {answer}");
            for wrong in wrong(example.as_object().unwrap()) {
                let event = event(OWNER, command, &wrong);
                let is_refused = settings.answer(event.clone()).await["error"]["code"] == "invalid";
                assert_eq!(validator.is_valid(&event), !is_refused, "{event}");
            }
        }
    }
}

/// Returns variations of parameters: one more member, a member less, and members of another type.
fn wrong(example: &Map<String, Value>) -> Vec<Value> {
    let with = |name: &str, value: Value| {
        let mut changed = example.clone();
        changed.insert(name.to_owned(), value);
        Value::Object(changed)
    };
    let mut variations = vec![with("hush", json!(1))];
    for name in example.keys() {
        variations.push(with(name, json!({"hush": 1})));
        let mut shorter = example.clone();
        shorter.remove(name);
        variations.push(Value::Object(shorter));
    }
    variations
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_is_answered_as_the_schema_says_and_shows_texts_and_secrets_once() {
    let settings = Settings::new().await;
    let (command, answer) = (jsonschema::validator_for(&schema()).unwrap(), definition("answer"));
    let walked = settings.walk().await;
    assert_eq!(walked.iter().map(|done| done.command).collect::<BTreeSet<_>>(), CommandName::ALL.into());
    for done in &walked {
        assert_valid(&command, &done.event);
        assert_valid(&answer, &done.answer);
        assert_valid(&definition(&format!("{}.result", done.command)), &done.answer["result"]);
    }
    for bad in [json!({}), event(OWNER, CommandName::KeysShow, &json!({"key_id": OWNER}))] {
        assert_valid(&answer, &settings.answer(bad).await);
    }
    for (member, made_by) in [
        ("api_key", [CommandName::KeysCreate, CommandName::KeysRotate]),
        ("secret", [CommandName::EndpointsAdd, CommandName::EndpointsRotateSecret]),
    ] {
        let showing = walked.iter().filter(|done| done.answer["result"].get(member).is_some());
        assert_eq!(showing.map(|done| done.command).collect::<Vec<_>>(), made_by, "{member}");
    }
}
