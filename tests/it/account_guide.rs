//! Compares the operator's chapter on the account's settings (`docs/operations.md`) with the function, and its code with
//! its programs.

use std::collections::BTreeSet;

use account::CommandName;
use admin::ErrorCode;
use local::environment::{ACCOUNT_ID, REGION};
use serde_json::{Value, json};

use crate::guide_code::{assert_shows, blocks, read};

const PROGRAMS: [&str; 3] = ["account/settings.py", "account/settings.mjs", "account/settings.rs"];
const LANGUAGES: [&str; 3] = ["python", "js", "rust"];

fn chapter() -> String {
    let guide = read("operations.md");
    guide.split("\n## ").find(|chapter| chapter.starts_with("The account's settings\n")).unwrap().to_owned()
}

/// Returns the words in code at the beginning of table rows, in a section of the chapter.
fn rows(heading: &str) -> BTreeSet<String> {
    let chapter = chapter();
    let (_, below) = chapter.split_once(&format!("\n### {heading}\n")).unwrap();
    let lines = below.split("\n### ").next().unwrap().lines();
    lines.filter_map(|line| line.strip_prefix("| `")?.split_once("` |")).map(|(word, _)| word.to_owned()).collect()
}

#[test]
fn the_chapters_code_is_that_of_its_programs() {
    assert_shows(&read("operations.md"), &PROGRAMS, &LANGUAGES, 1);
}

#[test]
fn the_chapter_has_each_command_and_each_code() {
    let documented: BTreeSet<_> = rows("Commands").into_iter().filter(|word| word.contains('.')).collect();
    assert_eq!(documented, CommandName::ALL.map(|command| command.to_string()).into());
    assert_eq!(rows("Errors"), ErrorCode::ALL.map(|code| code.to_string()).into());
}

#[test]
fn the_policy_allows_the_one_function_to_be_invoked_and_nothing_else() {
    let chapter = chapter();
    let (_, _, policy) = blocks(&chapter).into_iter().find(|(_, language, _)| *language == "json").unwrap();
    let statement = json!({
        "Effect": "Allow",
        "Action": "lambda:InvokeFunction",
        "Resource": format!("arn:aws:lambda:{REGION}:{ACCOUNT_ID}:function:marketplace-account:live"),
    });
    let policy: Value = serde_json::from_str(&policy).unwrap();
    assert_eq!(policy, json!({"Version": "2012-10-17", "Statement": [statement]}));
}
