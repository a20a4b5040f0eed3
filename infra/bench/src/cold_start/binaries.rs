//! Builds the programs as they are deployed. The functions are built together, because packages that are built
//! together share the features of their dependencies.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use escargot::CargoBuild;
use escargot::format::Message;

use crate::output::text;

/// The programs that are started, the limits first.
pub(crate) const PROGRAMS: [&str; 16] = [
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
];

/// How many of the programs are limits.
const LIMIT_COUNT: usize = 3;

/// The paths of the programs.
pub(super) struct Binaries(HashMap<String, PathBuf>);

impl Binaries {
    /// Builds the programs that are not up to date. The first time takes some minutes.
    pub(super) fn build() -> Result<Self, String> {
        let mut built = build(&["limits"])?;
        built.extend(build(&["limit-sdk"])?);
        built.extend(build(&PROGRAMS[LIMIT_COUNT..])?);
        Ok(Self(built))
    }

    pub(super) fn path(&self, program: &str) -> Result<&Path, String> {
        self.0.get(program).map(PathBuf::as_path).ok_or_else(|| format!("no program {program} was built"))
    }
}

fn build(packages: &[&str]) -> Result<HashMap<String, PathBuf>, String> {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");
    let packages = packages.iter().flat_map(|package| ["--package", *package]);
    let mut command = CargoBuild::new().manifest_path(manifest).release().args(packages).into_command();
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
