//! Calls of `marketctl` as people make them, with what each must say and what it must not. They once misled somebody.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use common::resources::Queue;
use feed::MAX_MESSAGE_BYTES;
use flate2::Compression;
use flate2::write::GzEncoder;
use local::environment::Variables;
use serde_json::Value;
use tests::webhooks_cli::{OWNER, WebhooksCli, text};
use tests::{Stack, binary, listing, marketctl};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::time::sleep;

/// Words that only those know who have read the program. No output may have them.
const WORDS_OF_RUST: [&str; 10] = [
    "SdkBody",
    "invalid type",
    "expected u",
    "invalid digit",
    "non-zero type",
    "..=",
    "Some(",
    "panicked",
    "unwrap",
    "error[",
];

/// A call: variables in place of those of the stack, the command line, the standard input, the exit code, what the output
/// must have and what it must not have.
type Call<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a str, i32, &'a [&'a str], &'a [&'a str]);

/// Makes calls one after the other. A word in braces stands for what it names, and `''` for an empty argument.
async fn make(variables: &Variables, names: &[(&str, &str)], calls: &[Call<'_>]) {
    let mut wrong = Vec::new();
    for (own, line, input, code, says, says_not) in calls {
        let fill = |text: &str| names.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value));
        let of_call = own.iter().fold(variables.clone(), |all, (name, value)| all.with(name, &fill(value)));
        let line = fill(line);
        let arguments: Vec<&str> = line.split_whitespace().map(|word| if word == "''" { "" } else { word }).collect();
        let run = marketctl(&of_call, &arguments, &fill(input)).await;
        let said = format!("{}\n{}", run.stdout, run.stderr);
        let missing = says.iter().map(|word| fill(word)).filter(|word| !said.contains(word.as_str()));
        let missing: Vec<_> = missing.collect();
        let mistaken: Vec<_> = says_not.iter().map(|word| fill(word)).filter(|word| said.contains(word)).collect();
        let rust: Vec<_> = WORDS_OF_RUST.into_iter().filter(|word| said.contains(word)).collect();
        if run.code != *code || !missing.is_empty() || !mistaken.is_empty() || !rust.is_empty() {
            wrong.push(format!("{line}: {} {missing:?} {mistaken:?} {rust:?}\n{said}", run.code));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_is_looked_at_before_the_first_call() {
    let stack = Stack::new().await;
    let instance = stack.instance().await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent_url = format!("http://{}", silent.local_addr().unwrap());
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let closed_url = format!("http://{closed}");
    let list = "keys list --user {user}";
    let names = [
        ("{user}", OWNER),
        ("{api}", instance.instance.base_url.as_str()),
        ("{silent}", silent_url.as_str()),
        ("{closed}", closed_url.as_str()),
    ];
    let endpoint = "AWS_ENDPOINT_URL";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("credentials");
    std::fs::write(&file, "[mine]\naws_access_key_id = a\naws_secret_access_key = b\n").unwrap();
    let files = [("AWS_SHARED_CREDENTIALS_FILE", file.to_str().unwrap())];
    let no_credentials = [
        ("AWS_ACCESS_KEY_ID", ""),
        ("AWS_SECRET_ACCESS_KEY", ""),
        ("AWS_EC2_METADATA_DISABLED", "true"),
        ("AWS_SHARED_CREDENTIALS_FILE", "/nowhere"),
    ];
    let no_region = [("AWS_REGION", ""), ("AWS_DEFAULT_REGION", "")];
    make(
        &Variables::new(&stack.aws.endpoint_url),
        &names,
        &[
            (&[(endpoint, "127.0.0.1:4566")], list, "", 1, &["has no scheme", "127.0.0.1:4566", "region"], &[]),
            (&[(endpoint, "127.0.0.1:4566")], "check --json", "", 1, &["\"environment\":{\"endpoint\""], &[]),
            (&[(endpoint, "{api}")], list, "", 1, &["{api} answers, but not as AWS does", "4566"], &[]),
            (&[(endpoint, "{api}")], "check", "", 1, &["not as AWS does"], &["deploy the stack"]),
            (&[(endpoint, "{closed}")], list, "", 1, &["cannot be reached: ", "refused"], &["dispatch"]),
            (&[(endpoint, "{silent}")], list, "", 1, &["did not answer within 2 s, twice"], &[]),
            (&[("AWS_PROFILE", "nope")], list, "", 1, &["there is no AWS profile `nope`"], &["credentials"]),
            (&[], "keys list --user {user} --profile nope", "", 1, &["there is no AWS profile `nope`"], &[]),
            (&files, "keys list --user {user} --profile mine --region us-east-1", "", 0, &["has no keys"], &[]),
            (&no_region, list, "", 1, &["no AWS region is set", "--region"], &[]),
            (&no_region, "keys list --user {user} --region us-east-1", "", 0, &["has no keys"], &[]),
            (&[], "--stack nope keys list --user {user}", "", 1, &["there is no stack `nope`", "MARKETCTL_STACK"], &[]),
            (&[], "--stack nope webhooks list", "", 1, &["there is no stack `nope`"], &[]),
            (&[], "--stack '' check", "", 2, &["--stack"], &[]),
            (&[], "--stack a_b check", "", 2, &["--stack", "letters, digits and hyphens"], &[]),
            (&[], "--region eu_1 check", "", 2, &["--region", "eu-central-1"], &[]),
            (&[("AWS_REGION", "eu_1")], list, "", 1, &["`eu_1` is no region", "eu-central-1"], &["host label"]),
            (&no_credentials, list, "", 1, &["no AWS credentials were found: neither"], &["provider"]),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_value_is_named_by_its_option_whoever_refuses_it() {
    let stack = Stack::new().await;
    let variables = Variables::new(&stack.aws.endpoint_url);
    let (endpoint, _) = WebhooksCli::new(&stack).add(OWNER).await;
    let create = ["--json", "keys", "create", "--user", OWNER, "--scope", "catalog:read"];
    let key = marketctl(&variables, &create, "").await.json();
    let (id, api_key) = (text(&key["key_id"]), text(&key["api_key"]));
    let names = [("{user}", OWNER), ("{id}", &id), ("{key}", &api_key), ("{endpoint}", &endpoint)];
    let refused = |line, option| -> Call<'_> { (&[], line, "", 2, option, &[]) };
    make(
        &variables,
        &names,
        &[
            refused("keys create --user {user} --scope catalog:read --name ''", &["'--name", "1 to 128 bytes"]),
            refused("keys create --user {user} --scope catalog:read --tier pro", &["'--tier", "--preview"]),
            refused(
                "keys create --user {user} --scope catalog:read --expires-at 2020-01-01T00:00:00Z",
                &["'--expires-at", "future"],
            ),
            refused("keys update {id} --limit 70000", &["'--limit", "15,000"]),
            refused("keys update {id} --limit 5 --tier pro", &["'--tier"]),
            refused("keys rotate {id} --overlap 8d", &["'--overlap", "7 days"]),
            (&[], "keys show {key}", "", 2, &["KEY_ID", "sk_…"], &["{key}"]),
            (&[], "keys revoke {key} --json", "", 2, &["{\"error\":\"invalid value 'sk_…'", "\"hint\""], &["{key}"]),
            refused("webhooks add --user {user} --url ftp://a.example --event listing.sold", &["'--url", "http"]),
            refused("webhooks add --user {user} --url https://10.0.0.1/ --event listing.sold", &["'--url"]),
            refused("webhooks update {endpoint} --url nonsense", &["'--url"]),
            refused(
                "webhooks deliveries {endpoint} --since 2026-11-21T00:00:00Z --until 2026-11-20T00:00:00Z",
                &["'--since", "before until"],
            ),
            refused(
                "webhooks resend --endpoint {endpoint} --since 2026-11-21T00:00:00Z --until 2026-11-20T00:00:00Z",
                &["'--since"],
            ),
            refused("repair --reset-version skin 7", &["'--reset-version", "listing"]),
            refused("repair --table orders", &["accounts"]),
            refused("repair --table keys --name a", &["invalid value for '--name'", "marketplace-keys-"]),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_result_says_what_is_not_so_and_each_says_where_things_stand() {
    let stack = Stack::new().await;
    let cli = WebhooksCli::new(&stack);
    let variables = Variables::new(&stack.aws.endpoint_url);
    let ((on, _), (off, _)) = (cli.add(OWNER).await, cli.add(OWNER).await);
    let create =
        ["--json", "keys", "create", "--user", OWNER, "--scope", "catalog:read,orders:read", "--expires-in", "30d"];
    let mut keys = Vec::new();
    for _ in 0..2 {
        keys.push(marketctl(&variables, &create, "").await.json());
    }
    let sent = ["--json", "feed", "send", "-"];
    assert_eq!(marketctl(&variables, &sent, "nonsense").await.code, 0);
    let workers = stack.workers().await;
    stack.queue(Queue::FeedDead).wait_for_count(1).await;
    drop(workers);
    let delivery = text(&cli.done(&format!("test {on}")).await["delivery_id"]);
    let [key, other] = [0, 1].map(|at: usize| text(&keys[at]["key_id"]));
    let leaked = format!("2026-11-20 GET /?key={}&page=1 \"200\"", text(&keys[0]["api_key"]));
    let both = format!("{leaked} {}", text(&keys[1]["api_key"]));
    let names = [
        ("{user}", OWNER),
        ("{on}", &on),
        ("{off}", &off),
        ("{key}", &key),
        ("{other}", &other),
        ("{delivery}", &delivery),
    ];
    make(
        &variables,
        &names,
        &[
            (&[], "keys identify -", &leaked, 0, &["The text has this key", "{key}"], &["sk_"]),
            (&[], "keys identify -", &both, 0, &["these 2 keys", "{key}", "{other}"], &["sk_"]),
            (&[], "keys list", "", 0, &["USER ID", "{user}", "{other}", "TODAY"], &["sk_"]),
            (&[], "keys list --limit 1", "", 0, &["1 more keys are left out"], &[]),
            (&[], "keys list --user {user} --limit 1", "", 2, &["cannot be used with"], &[]),
            (&[], "keys identify -", "nothing of the kind", 1, &["there is no API key in the text"], &[]),
            (&[], "keys list --user {user}", "", 0, &["active"], &["\u{1b}["]),
            (&[], "keys rotate {other} --overlap 1h", "", 0, &["is accepted until"], &[]),
            (&[], "keys show {other}", "", 0, &["replaced, accepted until", "Replaced by"], &[]),
            (&[], "keys revoke {key}", "", 0, &["is revoked", "cannot be undone"], &[]),
            (&[], "keys list --user {user}", "", 0, &["revoked at 20", "replaced, accepted until"], &[]),
            (&[], "--quiet webhooks disable {off}", "", 0, &["is disabled"], &["\"audit\""]),
            (
                &[],
                "webhooks list",
                "",
                0,
                &["{user}", "disabled (by owner or operator) since 20", "enabled", "HELD"],
                &[],
            ),
            (&[("COLUMNS", "60")], "webhooks list --user {user}", "", 0, &["ENDPOINT ID  {off}\n"], &[]),
            (
                &[],
                "webhooks show-endpoint {off}",
                "",
                0,
                &["disabled (by owner or operator) since 20", "Held deliveries", "{user}"],
                &[],
            ),
            (&[], "webhooks test {off}", "", 0, &["is queued", "--wait"], &["Sent"]),
            (&[], "webhooks test {on}", "", 0, &["is queued"], &["Sent"]),
            (&[], "webhooks resend {delivery}", "", 0, &["is queued"], &["Sent again"]),
            (&[], "webhooks resend --endpoint {on}", "", 0, &["has no such deliveries"], &["Sent again"]),
            (&[], "webhooks resend --endpoint {off}", "", 1, &["is disabled", "webhooks enable"], &[]),
            (&[], "webhooks deliveries {on} --limit 1", "", 0, &["newest 1", "--limit"], &[]),
            (&[], "webhooks deliveries --user {user}", "", 0, &["{on}", "{off}", "{delivery}", "USER ID"], &[]),
            (&[], "webhooks deliveries --all --limit 1", "", 0, &["newest 1", "{user}"], &[]),
            (&[], "webhooks deliveries --all --status held", "", 0, &["There are no deliveries that are held"], &[]),
            (&[], "webhooks deliveries", "", 2, &["--user", "--all"], &[]),
            (&[], "webhooks show {delivery}", "", 0, &["of user {user}"], &[]),
            (
                &[],
                "webhooks deliveries {on} --about 6f9619ff-8b86-d011-b42d-00c04fc96400",
                "",
                0,
                &["no deliveries of this kind"],
                &[],
            ),
            (&[], "webhooks rotate-secret {on}", "", 0, &["has a next secret.\n"], &["void"]),
            (&[], "webhooks show-endpoint {on}", "", 0, &["Next secret active    20", "Old secret valid to   20"], &[]),
            (&[], "webhooks rotate-secret {on}", "", 0, &["is void"], &[]),
            (&[], "webhooks enable {off}", "", 0, &["webhooks resend --endpoint {off}"], &[]),
            (&[], "repair --dry-run --table keys", "", 0, &["TO CHANGE", "No other table"], &["endpoints"]),
            (&[], "check", "", 0, &["feed-dead holds 1 dead letters", "docs/runbook.md"], &[]),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_is_named_for_what_it_is_and_each_bad_line_once() {
    let stack = Stack::new().await;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let good = listing(1, "1.00", "2026-11-20T10:00:00Z", 1).to_string();
    let wrong = r#"{"type":"item","id":"ak","removed":true,"version":"1h"}"#;
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    write!(packed, "{good}\n{wrong}\n").unwrap();
    let packed = packed.finish().unwrap();
    let files: [(&str, &[u8]); 6] = [
        ("pretty", b"{\n  \"type\": \"item\"\n}\n"),
        ("gzip", &packed),
        ("cut", &packed[..packed.len() / 2]),
        ("wrong", wrong.as_bytes()),
        ("mixed", &[good.as_bytes(), b"\n\n", wrong.as_bytes(), b"\n"].concat()),
        ("long", &vec![b'x'; MAX_MESSAGE_BYTES + 1]),
    ];
    for (name, content) in files {
        std::fs::write(path(name), content).unwrap();
    }
    let directory = path("");
    let names = [("{dir}/", directory.as_str())];
    let not_stored = "Nothing is in the feed queue";
    make(
        &Variables::new(&stack.aws.endpoint_url),
        &names,
        &[
            (&[], "import {dir}/nowhere", "", 1, &["nowhere cannot be opened"], &[]),
            (&[], "import {dir}/pretty", "", 1, &["one JSON document", "jq -c"], &["line 2"]),
            (&[], "feed send {dir}/pretty", "", 1, &["nothing was sent", "one JSON document"], &["line 2"]),
            (
                &[],
                "import {dir}/wrong",
                "",
                1,
                &["version: must be a whole number", "Nothing of the file is stored"],
                &["All other"],
            ),
            (
                &[],
                "import {dir}/mixed --dry-run",
                "",
                1,
                &["1 valid, 1 refused. Nothing was written.", "line 3"],
                &["stored"],
            ),
            (
                &[],
                "import {dir}/mixed --rejects {dir}/rejects",
                "",
                1,
                &["1 applied, 0 unchanged, 1 refused", "line 3", "Correct these in {dir}/rejects"],
                &[],
            ),
            (&[], "import {dir}/rejects", "", 1, &["1 of 1 lines refused"], &[]),
            (&[], "import {dir}/gzip", "", 1, &["0 applied, 1 unchanged", "line 2"], &[]),
            (&[], "import {dir}/gzip --rejects {dir}/unpacked", "", 1, &["Correct these in {dir}/unpacked"], &[]),
            (&[], "import {dir}/unpacked", "", 1, &["1 of 1 lines refused"], &[]),
            (&[], "import {dir}/cut", "", 1, &["the input cannot be read"], &[]),
            (&[], "import - --rejects {dir}/x", "", 2, &["'--rejects", "standard input"], &[]),
            (&[], "import {dir}/mixed --rejects {dir}/mixed", "", 2, &["'--rejects", "another file"], &[]),
            (&[], "import {dir}/wrong --rejects {dir}/no/such", "", 1, &["cannot be written"], &[]),
            (&[], "feed send {dir}/long", "", 1, &["must have at most", not_stored], &["All other"]),
            (&[], "man {dir}/man", "", 0, &[], &[]),
            (&[], "completions bash", "", 0, &["deliveries", "webhooks"], &[]),
        ],
    )
    .await;
    assert!(Path::new(&path("man")).join("marketctl-keys-create.1").exists());
    let refused = marketctl(&Variables::new(&stack.aws.endpoint_url), &["--json", "import", &path("wrong")], "").await;
    assert_eq!(refused.json()["refused"][0]["line"], 1);
    let failure: Value = serde_json::from_str(&refused.stderr).unwrap();
    assert_eq!(failure.as_object().unwrap().keys().collect::<Vec<_>>(), ["error", "hint"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn help_and_tables_fit_a_narrow_terminal() {
    let variables = Variables::new("http://127.0.0.1:1").with("COLUMNS", "60");
    let mut commands = vec![Vec::new()];
    while let Some(command) = commands.pop() {
        let arguments: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
        let help = marketctl(&variables, &arguments, "").await;
        assert_eq!((help.code, help.stderr.as_str()), (0, ""), "{arguments:?}");
        let wide: Vec<_> = help.stdout.lines().filter(|line| line.chars().count() > 60).collect();
        assert!(wide.is_empty(), "{arguments:?}: {wide:?}");
        let listed =
            help.stdout.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
        let starts = listed.filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')));
        let names = starts.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
        commands.extend(names.map(|name| [command.clone(), vec![name.to_owned()]].concat()));
    }
}

/// Waits until a process handles Ctrl-C itself.
async fn handles_interrupts(id: u32) {
    let caught = || {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim().to_owned();
        u64::from_str_radix(&mask, 16).unwrap() & 0b10 != 0
    };
    while !caught() {
        sleep(Duration::from_millis(10)).await;
    }
}

#[cfg(target_os = "linux")]
/// Runs a command, and presses Ctrl-C as soon as it has begun. Returns its exit code and what it said.
async fn interrupted(stack: &Stack, arguments: &[&str]) -> (Option<i32>, [String; 2]) {
    let mut command = Command::new(binary("marketctl"))
        .args(arguments)
        .envs(Variables::new(&stack.aws.endpoint_url).iter())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let id = command.id().unwrap();
    let stdin = command.stdin.take();
    handles_interrupts(id).await;
    assert!(Command::new("kill").args(["-INT", &id.to_string()]).status().await.unwrap().success());
    let ended = command.wait_with_output().await.unwrap();
    drop(stdin);
    (ended.status.code(), [ended.stdout, ended.stderr].map(|bytes| String::from_utf8(bytes).unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_ends_long_work_and_says_what_to_do() {
    let stack = Stack::new().await;
    let (code, said) = interrupted(&stack, &["import", "-"]).await;
    assert_eq!((code, said[0].trim()), (Some(1), "Nothing was imported."), "{said:?}");
    assert!(said[1].contains("nothing was imported: it was interrupted") && said[1].contains("again"), "{said:?}");
    let rotation = ["webhooks", "rotate-keyring", "--remove-old", "--yes"];
    let variables = Variables::new(&stack.aws.endpoint_url);
    assert_eq!(marketctl(&variables, &rotation[..2], "").await.code, 0);
    // It waits for minutes, until all functions have the keyring from before.
    let (code, said) = interrupted(&stack, &rotation).await;
    assert!(code == Some(1) && said[1].contains("interrupted") && said[1].contains("again"), "{said:?}");
}
