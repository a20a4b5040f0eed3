//! The project's binaries. The harness builds them, because `cargo test` does not build those of other packages.
//!
//! What cargo says about the workspace.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::env;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{self, Stdio};
use std::sync::OnceLock;

use escargot::format::Message;
use local::environment::Variables;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};

use crate::secrets;
use crate::target::stack_name;

/// Returns the path of a binary. The first call builds all binaries, with the features of a workspace build, so that
/// nothing is compiled twice.
pub fn binary(name: &str) -> PathBuf {
    static BUILT: OnceLock<HashMap<String, PathBuf>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
        let mut build = escargot::CargoBuild::new().manifest_path(manifest).args(["--workspace", "--bins"]);
        // Build scripts, ring's among them, run again if a variable changes that they watch, and with them the compiler.
        // Those that `cargo test` sets would differ from those of a build in a shell.
        for (name, _) in env::vars_os().filter(|(name, _)| set_for_tests(name)) {
            build = build.env_remove(name);
        }
        let messages = build.current_release().exec().unwrap();
        messages.filter_map(|message| executable(message.unwrap().decode().unwrap())).collect()
    });
    built.get(name).unwrap_or_else(|| panic!("no binary {name} among {:?}", built.keys())).clone()
}

fn set_for_tests(variable: &OsStr) -> bool {
    variable.to_str().is_some_and(|name| name.starts_with("CARGO_MANIFEST_") || name.starts_with("CARGO_PKG_"))
}

fn executable(message: Message<'_>) -> Option<(String, PathBuf)> {
    let Message::CompilerArtifact(artifact) = message else { return None };
    let path = artifact.executable?;
    Some((artifact.target.name.into_owned(), path.into_owned()))
}

/// What a program left behind.
#[derive(Debug)]
pub struct Program {
    pub code: i32,
    pub stdout: String,
    /// Standard error. That of `marketctl` comes without its audit lines.
    pub stderr: String,
}

impl Program {
    /// Standard output as one JSON document.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

/// Starts `local` on free ports and waits for its line of JSON.
pub async fn local(arguments: &[&str]) -> (Child, Value) {
    let mut child = Command::new(binary("local"))
        .args(["--listen", "127.0.0.1:0", "--json"])
        .args(arguments)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let line = BufReader::new(child.stdout.take().unwrap()).lines().next_line().await.unwrap().unwrap();
    (child, serde_json::from_str(&line).unwrap())
}

/// Runs `marketctl` against a stack.
pub async fn marketctl(variables: &Variables, arguments: &[&str], input: &str) -> Program {
    audited_marketctl(variables, arguments, input).await.0
}

/// Runs `marketctl` against a stack: the one that the arguments name, or the one that the tests run against. Returns also
/// the audit lines that it wrote.
pub async fn audited_marketctl(variables: &Variables, arguments: &[&str], input: &str) -> (Program, Vec<Value>) {
    let stack = stack_name();
    let own: &[&str] = if arguments.contains(&"--stack") { &["--yes"] } else { &["--yes", "--stack", stack.as_str()] };
    let mut child = Command::new(binary("marketctl"))
        .args(own)
        .args(arguments)
        .envs(variables.iter())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // A program that refuses its arguments does not read its input, so writing may fail.
    let writing = tokio::spawn(async move { stdin.write_all(input.as_bytes()).await });
    let output = child.wait_with_output().await.unwrap();
    let _ = writing.await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    secrets::search(&output.stderr, "the standard error of marketctl");
    let (stderr, audit) = without_audit(&text(output.stderr));
    (Program { code: output.status.code().unwrap_or(-1), stdout: text(output.stdout), stderr }, audit)
}

/// Divides the lines of standard error.
fn without_audit(stderr: &str) -> (String, Vec<Value>) {
    let (mut rest, mut audit) = (String::new(), Vec::new());
    for line in stderr.split_inclusive('\n') {
        match serde_json::from_str::<Value>(line) {
            Ok(line) if line["message"] == "audit" => audit.push(line),
            _ => rest.push_str(line),
        }
    }
    (rest, audit)
}

/// The platform that the functions are deployed to. With it, the packages are the same on every machine.
const DEPLOYED: &str = "aarch64-unknown-linux-gnu";

/// Returns the workspace's own packages, as `cargo metadata` describes them.
pub fn metadata() -> Value {
    serde_json::from_str(&cargo(&["metadata", "--no-deps", "--format-version", "1"])).unwrap()
}

/// Returns the packages that a package is built from if it is built alone, itself included. Each is its name and its
/// version, such as `zstd v0.13.3`.
pub fn packages_of(name: &str) -> BTreeSet<String> {
    let tree = cargo(&["tree", "--edges", "normal", "--prefix", "none", "--target", DEPLOYED, "--package", name]);
    tree.lines().map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect()
}

/// Returns the features that each package of the workspace's builds has on this machine, if these kinds of dependencies
/// count. A package that is also built for build scripts has two sets of them.
pub fn features(edges: &str) -> BTreeMap<String, BTreeSet<String>> {
    let tree = cargo(&["tree", "--workspace", "--edges", edges, "--prefix", "none", "--format", "{p}|{f}"]);
    let mut features: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (package, enabled) in tree.lines().filter_map(|line| line.split_once('|')) {
        let enabled = enabled.trim_end_matches(" (*)").to_owned();
        features.entry(package.to_owned()).or_default().insert(enabled);
    }
    features
}

/// Runs cargo, which may neither use the network nor change `Cargo.lock`.
fn cargo(arguments: &[&str]) -> String {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
    let mut cargo = process::Command::new(env!("CARGO"));
    let output = cargo.args(arguments).args(["--locked", "--offline", "--manifest-path", manifest]).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo {arguments:?} (does `cargo fetch --locked` help?): {error}");
    String::from_utf8(output.stdout).unwrap()
}
