//! Tests the guide for webhook receivers (`docs/webhooks.md`): its code is the code of its programs, its example is
//! signed as we sign, and its events are those of the API description.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use secrets::{EndpointSecret, service_signature, standard_signature};
use serde_json::Value;
use tests::Stack;
use types::event::EventKind;
use types::timestamp::Timestamp;

const DOCS_DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");
const PROGRAMS: [&str; 4] = ["verify.py", "verify.mjs", "verify.go", "verify.rs"];
const LANGUAGES: [&str; 4] = ["python", "js", "go", "rust"];

fn read(path: &str) -> String {
    fs::read_to_string(format!("{DOCS_DIR}/{path}")).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the regions of a program by name, as `program: name`. The pieces of one region are joined by an empty
/// line.
fn regions(program: &str) -> BTreeMap<String, String> {
    let mut pieces = BTreeMap::<String, Vec<String>>::new();
    let text = read(&format!("webhooks/{program}"));
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(name) = remark(line).and_then(|remark| remark.strip_prefix("region: ")) else { continue };
        let piece: Vec<_> = lines.by_ref().take_while(|line| remark(line) != Some("endregion")).collect();
        pieces.entry(format!("{program}: {name}")).or_default().push(piece.join("\n").trim_matches('\n').to_owned());
    }
    pieces.into_iter().map(|(name, pieces)| (name, pieces.join("\n\n"))).collect()
}

/// Returns the text of a line that is a comment.
fn remark(line: &str) -> Option<&str> {
    line.strip_prefix("// ").or_else(|| line.strip_prefix("# "))
}

/// Returns the guide's blocks of code: the source that the comment before a block names, if any, its language, and
/// its text.
fn blocks(guide: &str) -> Vec<(Option<&str>, &str, String)> {
    let (mut blocks, mut before) = (Vec::new(), "");
    let mut lines = guide.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let text: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
            let source = before.strip_prefix("<!-- webhooks/").and_then(|rest| rest.strip_suffix(" -->"));
            blocks.push((source, language, text.join("\n")));
        }
        before = line;
    }
    blocks
}

#[test]
fn the_guides_code_is_that_of_its_programs() {
    let guide = read("webhooks.md");
    let mut regions: BTreeMap<_, _> = PROGRAMS.into_iter().flat_map(regions).collect();
    assert_eq!(regions.len(), 2 * PROGRAMS.len(), "{:?}", regions.keys());
    for (source, language, text) in blocks(&guide) {
        assert_eq!(source.is_some(), LANGUAGES.contains(&language), "a block of {language} from {source:?}");
        if let Some(source) = source {
            let region =
                regions.remove(source).unwrap_or_else(|| panic!("{source} is not a region, or is in the guide twice"));
            assert_eq!(text, region, "{source}");
        }
    }
    assert_eq!(regions.into_keys().collect::<Vec<_>>(), Vec::<String>::new(), "only in the programs");
}

#[test]
fn the_guides_example_is_signed_as_we_sign() {
    let guide = read("webhooks.md");
    let headers: BTreeMap<String, String> = serde_json::from_str(&read("webhooks/example/headers.json")).unwrap();
    let body = read("webhooks/example/body.json");
    let secret = guide.split('`').find(|text| text.starts_with("whsec_A")).unwrap();
    let secret = EndpointSecret::parse(secret).unwrap();
    let envelope: Value = serde_json::from_str(&body).unwrap();
    let [id, event] = ["id", "event"].map(|name| envelope[name].as_str().unwrap());
    let sent_at = Timestamp::from_millis(headers["X-Service-Timestamp"].parse::<i64>().unwrap() * 1_000);

    let expected = [
        ("Content-Type", "application/json".to_owned()),
        ("X-Service-Delivery-Id", id.to_owned()),
        ("X-Service-Event", event.to_owned()),
        ("X-Service-Signature", service_signature(&secret, body.as_bytes())),
        ("X-Service-Timestamp", sent_at.seconds().to_string()),
        ("webhook-id", id.to_owned()),
        ("webhook-signature", standard_signature([&secret], id, sent_at, body.as_bytes())),
        ("webhook-timestamp", sent_at.seconds().to_string()),
    ];
    assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value)).into());

    let request = blocks(&guide).into_iter().find(|(_, language, _)| *language == "http").unwrap().2;
    let (head, shown) = request.split_once("\n\n").unwrap();
    assert_eq!(shown, body);
    let documented: BTreeSet<_> = head.lines().skip(1).map(str::to_owned).collect();
    assert_eq!(documented, headers.into_iter().map(|(name, value)| format!("{name}: {value}")).collect());
}

/// Returns the fields of each event in the guide's table, with `?` after optional ones.
fn documented(guide: &str) -> BTreeMap<String, BTreeSet<String>> {
    let rows = guide.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let events = rows.filter(|(event, _)| event.contains('.'));
    let fields = |row: &str| {
        let cell = row.trim_end_matches(" |").rsplit(" | ").next().unwrap().to_owned();
        cell.split(", ").map(|field| field.replace('`', "")).collect()
    };
    events.map(|(event, row)| (event.to_owned(), fields(row))).collect()
}

/// Returns the fields in the schema of an event's data, with `?` after optional ones.
fn described(document: &Value, operation: &Value) -> BTreeSet<String> {
    let schema = &operation["post"]["requestBody"]["content"]["application/json"]["schema"];
    let data = schema["properties"]["data"]["$ref"].as_str().unwrap();
    let data = document.pointer(data.trim_start_matches('#')).unwrap();
    let required = data["required"].as_array().unwrap();
    let field =
        |name: &String| if required.contains(&name.as_str().into()) { name.clone() } else { format!("{name}?") };
    data["properties"].as_object().unwrap().keys().map(field).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guides_events_are_those_of_the_description() {
    let stack = Stack::new().await;
    let document = stack.instance().await.client.send("GET", "/v1/openapi.json", &[]).await.json();
    let events = document["webhooks"].as_object().unwrap().iter();
    let described: BTreeMap<_, _> =
        events.map(|(event, operation)| (event.clone(), described(&document, operation))).collect();
    assert_eq!(described.len(), EventKind::ALL.len());
    assert_eq!(documented(&read("webhooks.md")), described);
}
