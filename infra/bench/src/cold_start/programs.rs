//! The programs that are started: how they are built, and the event that each is given.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use api::routes::ROUTES;
use escargot::CargoBuild;
use escargot::format::Message;
use local::demo::{LargeMarket, variant_id};
use local::runtime_api::http_event;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::figures::text;
use crate::stack::{AwsProcess, authorization};

const MANIFEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");
/// Programs that do no more than Lambda and the AWS SDK require.
const LIMITS: [&str; 3] = ["limit-runtime", "limit-sdk", "limit-call"];
/// A function that is not started, because its event comes from a deployment.
const HOOK: &str = "pretraffic";

/// The programs, built as they are deployed.
pub(super) struct Programs {
    /// The limits first, then the functions.
    pub(super) names: Vec<String>,
    paths: HashMap<String, PathBuf>,
}

impl Programs {
    /// Builds the programs that are not up to date. The first time takes some minutes. The functions are built together,
    /// because packages that are built together share the features of their dependencies.
    pub(super) fn build() -> Result<Self, String> {
        let lambda = lambda_metadata()?;
        let settings = strings(&lambda, "config")?;
        let mut functions = strings(&lambda, "packages")?;
        functions.retain(|function| function != HOOK);
        let mut paths = HashMap::new();
        for packages in [&["limits".to_owned()][..], &["limit-sdk".to_owned()], &functions] {
            paths.extend(build(packages, &settings)?);
        }
        let names = LIMITS.map(ToOwned::to_owned).into_iter().chain(functions).collect();
        Ok(Self { names, paths })
    }

    pub(super) fn path(&self, program: &str) -> Result<&Path, String> {
        self.paths.get(program).map(PathBuf::as_path).ok_or_else(|| format!("no program {program} was built"))
    }
}

/// Returns what `cargo lambda build` builds, and the settings with which it overrides the release profile.
fn lambda_metadata() -> Result<Value, String> {
    let arguments = ["metadata", "--no-deps", "--format-version", "1", "--manifest-path", MANIFEST];
    let output = Command::new(env!("CARGO")).args(arguments).stderr(Stdio::inherit()).output().map_err(text)?;
    let metadata: Value = serde_json::from_slice(&output.stdout).map_err(text)?;
    Ok(metadata["metadata"]["lambda"]["build"].clone())
}

fn strings(lambda: &Value, name: &str) -> Result<Vec<String>, String> {
    let strings = serde_json::from_value(lambda[name].clone());
    strings.map_err(|error| format!("{MANIFEST}: workspace.metadata.lambda.build.{name}: {error}"))
}

fn build(packages: &[String], settings: &[String]) -> Result<HashMap<String, PathBuf>, String> {
    let packages = packages.iter().flat_map(|package| ["--package", package]);
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

/// Makes the event for each program.
pub(super) struct Events {
    authorization: String,
    item: String,
    variant: String,
}

impl Events {
    /// Creates a key with every scope, for requests about the first item.
    pub(super) async fn new(aws: &AwsProcess, market: &LargeMarket) -> Result<Self, String> {
        let item = market.item_id(0).ok_or("the market is empty")?.to_string();
        Ok(Self { authorization: authorization(&aws.admin()?).await?, item, variant: variant_id(0, 0).to_string() })
    }

    /// Returns the event for a program: a request on its route, a batch without messages, a
    /// command, or a tick of its schedule.
    pub(super) fn for_program(&self, program: &str) -> Value {
        match (ROUTES.iter().find(|route| route.function == program), program) {
            (Some(route), _) => self.request(route.path),
            (None, "ingest" | "webhook") => json!({ "Records": [] }),
            (None, "account") => {
                json!({ "version": 1, "user_id": Uuid::nil(), "command": "keys.list", "parameters": {} })
            }
            _ => json!({}),
        }
    }

    fn request(&self, route: &str) -> Value {
        let path = route.replace("{id}", &self.item).replace("{variant_id}", &self.variant);
        http_event(route, &path, "", &json!({"authorization": self.authorization, "accept": "*/*"}))
    }
}
