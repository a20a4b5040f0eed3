//! Makes what the function serves from `openapi.yaml` and the guides: the description as JSON, the docs page, the page as
//! Markdown, and llms.txt. So the function parses and renders nothing.

mod document;
mod errors;
mod markdown;
mod page;
mod prose;
mod samples;
mod tables;

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use document::Document;

/// The guides that become the last chapters of the description's text.
const GUIDES: [&str; 2] = ["../../docs/clients.md", "../../docs/webhooks.md"];

fn main() -> Result<(), Box<dyn Error>> {
    for source in ["openapi.yaml", "build"].into_iter().chain(GUIDES) {
        println!("cargo::rerun-if-changed={source}");
    }
    let mut document = Document::parse(&fs::read_to_string("openapi.yaml")?)?;
    for guide in GUIDES {
        document.add_chapter(&fs::read_to_string(guide)?);
    }
    let made = env::var("OUT_DIR")?;
    for (name, text) in [
        ("openapi.json", serde_json::to_string(document.root())?),
        ("docs.html", page::render(&document)),
        ("docs.policy", page::policy()),
        ("docs.md", markdown::render(&document)),
        ("llms.txt", markdown::index(&document)),
    ] {
        fs::write(Path::new(&made).join(name), text)?;
    }
    Ok(())
}
