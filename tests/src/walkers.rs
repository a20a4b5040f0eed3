//! Runs the programs of the guide for client developers (`docs/clients`).

use std::process::Stdio;

use serde_json::Value;
use tokio::process::{Child, Command};

use crate::binaries::binary;
use crate::installed;

const TYPESCRIPT_LIBRARY: &str = "tsx@4.23.15";
const PYTHON_PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/clients/walk.py");
/// The records of a page, so that few records make many pages.
const PAGE_SIZE: &str = "2";

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

    /// Starts the program, which looks at the listings so many times. The first call on a machine installs its libraries.
    pub fn start(self, base_url: &str, api_key: &str, rounds: u32) -> Walk {
        let mut command = self.command();
        command.args([&rounds.to_string(), "0"]).env("BASE_URL", base_url).env("API_KEY", api_key);
        command.env("NO_PROXY", "127.0.0.1");
        command.env("PAGE_SIZE", PAGE_SIZE).stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        Walk(self, command.spawn().unwrap())
    }

    fn command(self) -> Command {
        match self {
            Self::Python => {
                let mut command = Command::new("python3");
                command.arg(PYTHON_PROGRAM);
                command
            }
            Self::TypeScript => {
                let mut command = installed::node("clients/walk.mts", &[TYPESCRIPT_LIBRARY]);
                // Node finds the library that understands TypeScript from the working directory.
                let program = command.get_args().next().unwrap().to_owned();
                let folder = std::path::Path::new(&program).parent().unwrap().to_owned();
                command.current_dir(folder).env("NODE_OPTIONS", "--import tsx");
                command.into()
            }
            Self::Rust => Command::new(binary("walk")),
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
