//! The functions' binaries: those that the harness builds, or those that were built for Lambda, which may need an
//! emulator. `infra/arm64/run` sets the variables.

use std::path::Path;

use tokio::process::Command;

use crate::binaries::binary;

/// The folder of functions that were built for Lambda, each as `NAME/bootstrap`. Without it the harness builds them.
const FUNCTIONS_VARIABLE: &str = "MARKETPLACE_FUNCTIONS";
/// The command that runs them, if this machine cannot run them itself. Its words are separated by spaces.
const RUNNER_VARIABLE: &str = "MARKETPLACE_RUNNER";
/// The C compiler for their architecture, with its arguments.
const COMPILER_VARIABLE: &str = "MARKETPLACE_CC";

/// Returns the command that starts a function.
pub(crate) fn function_command(name: &str) -> Command {
    let folder = std::env::var_os(FUNCTIONS_VARIABLE);
    let program = folder.map_or_else(|| binary(name), |folder| Path::new(&folder).join(name).join("bootstrap"));
    if let Some(mut runner) = command(RUNNER_VARIABLE) {
        runner.arg(program);
        return runner;
    }
    Command::new(program)
}

/// Builds the library that leads a function's connections to this machine, in a folder. Returns its path, for
/// `LD_PRELOAD`.
pub async fn redirect_library(folder: &Path) -> String {
    let library = folder.canonicalize().unwrap().join("redirect.so").to_str().unwrap().to_owned();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/redirect.c");
    let mut compiler = command(COMPILER_VARIABLE).unwrap_or_else(|| Command::new("cc"));
    let built = compiler.args(["-shared", "-fPIC", "-o", library.as_str(), source, "-ldl"]).output().await.unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    library
}

/// Returns the command that a variable holds.
fn command(variable: &str) -> Option<Command> {
    let words = std::env::var(variable).ok()?;
    let mut words = words.split_whitespace();
    let mut command = Command::new(words.next()?);
    command.args(words);
    Some(command)
}
