//! Builds the programs as they are deployed. The functions are built together, because packages that are built
//! together share the features of their dependencies.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use escargot::CargoBuild;
use escargot::format::Message;
use serde_json::Value;

use crate::output::text;

/// The programs that are started, the limits first.
pub(crate) const PROGRAMS: [&str; 17] = [
    "limit-runtime",
    "limit-sdk",
    "limit-call",
    "me",
    "catalog",
    "item",
    "prices",
    "marketplaces",
    "listings",
    "orders",
    "balance",
    "openapi",
    "ingest",
    "compact",
    "webhook",
    "sweep",
    "account",
];

const MANIFEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");
/// How many of the programs are limits.
const LIMIT_COUNT: usize = 3;

/// The paths of the programs.
pub(super) struct Binaries(HashMap<String, PathBuf>);

impl Binaries {
    /// Builds the programs that are not up to date. The first time takes some minutes.
    pub(super) fn build() -> Result<Self, String> {
        let settings = deployed_settings()?;
        let mut built = build(&["limits"], &settings)?;
        built.extend(build(&["limit-sdk"], &settings)?);
        built.extend(build(&PROGRAMS[LIMIT_COUNT..], &settings)?);
        Ok(Self(built))
    }

    pub(super) fn path(&self, program: &str) -> Result<&Path, String> {
        self.0.get(program).map(PathBuf::as_path).ok_or_else(|| format!("no program {program} was built"))
    }
}

/// Returns the settings with which `cargo lambda build` overrides the release profile.
fn deployed_settings() -> Result<Vec<String>, String> {
    let arguments = ["metadata", "--no-deps", "--format-version", "1", "--manifest-path", MANIFEST];
    let output = Command::new(env!("CARGO")).args(arguments).stderr(Stdio::inherit()).output().map_err(text)?;
    let metadata: Value = serde_json::from_slice(&output.stdout).map_err(text)?;
    let settings = metadata["metadata"]["lambda"]["build"]["config"].clone();
    serde_json::from_value(settings).map_err(|error| format!("{MANIFEST}: workspace.metadata.lambda.build: {error}"))
}

fn build(packages: &[&str], settings: &[String]) -> Result<HashMap<String, PathBuf>, String> {
    let packages = packages.iter().flat_map(|package| ["--package", *package]);
    let settings = settings.iter().flat_map(|setting| ["--config", setting]);
    let command = CargoBuild::new().manifest_path(MANIFEST).release().args(settings).args(packages);
    let mut command = command.into_command();
    let output = command.stderr(Stdio::inherit()).output().map_err(text)?;
    if !output.status.success() {
        return Err("the programs cannot be built".to_owned());
    }
    let messages = output.stdout.split(|byte| *byte == b'\n');
    let messages = messages.filter_map(|line| serde_json::from_slice::<Message<'_>>(line).ok());
    Ok(messages.filter_map(executable).collect())
}

fn executable(message: Message<'_>) -> Option<(String, PathBuf)> {
    let Message::CompilerArtifact(artifact) = message else { return None };
    let path = artifact.executable?;
    Some((artifact.target.name.into_owned(), path.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_of_the_api_is_started() {
        let functions = api::routes::ROUTES.iter().map(|route| route.function);
        let left_out: Vec<&str> = functions.filter(|function| !PROGRAMS.contains(function)).collect();
        assert!(left_out.is_empty(), "{left_out:?}");
    }
}
