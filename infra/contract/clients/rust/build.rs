//! Generates the client from the OpenAPI 3.0 rendition that `DESCRIPTION` names.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use progenitor::{GenerationSettings, Generator, InterfaceStyle};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-env-changed=DESCRIPTION");
    let file = env::var("DESCRIPTION")?;
    println!("cargo:rerun-if-changed={file}");
    let description = serde_json::from_str(&fs::read_to_string(file)?)?;
    let mut settings = GenerationSettings::new();
    settings.with_interface(InterfaceStyle::Builder);
    let client = Generator::new(&settings).generate_tokens(&description)?;
    fs::write(Path::new(&env::var("OUT_DIR")?).join("client.rs"), client.to_string())?;
    Ok(())
}
