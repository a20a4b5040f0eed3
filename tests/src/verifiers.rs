//! Runs the programs of the receiver's guide (`docs/webhooks`) on a delivery, as a receiver would.

use std::collections::BTreeMap;
use std::process::Stdio;

use http::HeaderMap;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::binaries::binary;
use crate::installed;

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
        let mut child = self
            .program()
            .arg(file.path())
            .env("WEBHOOK_SECRET", secret)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(body).await.unwrap();
        let output = child.wait_with_output().await.unwrap();
        assert!(output.status.success(), "{self:?}: {}", output.status);
        SignatureValidity::parse(&String::from_utf8(output.stdout).unwrap())
    }

    fn program(self) -> Command {
        match self {
            Self::Python => installed::python("webhooks/verify.py", &[PYTHON_LIBRARY]).into(),
            Self::Node => installed::node("webhooks/verify.mjs", &NODE_LIBRARIES).into(),
            Self::Rust => Command::new(binary("verify")),
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
