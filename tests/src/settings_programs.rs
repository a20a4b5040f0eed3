//! Runs the programs of the operator's guide (`docs/account`) as the marketplace's web application would.

use std::process::Stdio;

use local::environment::Variables;
use tokio::process::Command;

use crate::binaries::{Program, binary};
use crate::installed;

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

    fn command(self) -> Command {
        match self {
            Self::Python => installed::python("account/settings.py", &PYTHON_LIBRARIES).into(),
            Self::Node => installed::node("account/settings.mjs", &[NODE_LIBRARY]).into(),
            Self::Rust => Command::new(binary("account-settings")),
        }
    }
}
