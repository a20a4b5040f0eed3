//! Samples of an operation's call in several languages, all made from the same [`Call`].
//!
//! Python, TypeScript and Go need only the language's own library. Rust needs `reqwest` with its feature `blocking`.

use maud::{Markup, html};

use super::call::Call;
use super::elements::code_block;

/// Renders the samples one below the other. The script makes tabs of them.
pub(super) fn render(call: &Call) -> Markup {
    html! {
        div.samples {
            @for (language, sample) in all(call) {
                details open[language == "curl"] {
                    summary { (language) }
                    (code_block(&sample))
                }
            }
        }
    }
}

fn all(call: &Call) -> [(&'static str, String); 5] {
    [
        ("curl", curl(call)),
        ("Python", python(call)),
        ("TypeScript", typescript(call)),
        ("Rust", rust(call)),
        ("Go", go(call)),
    ]
}

/// Returns the text if the call needs a key.
fn keyed<'a>(call: &Call, text: &'a str) -> &'a str {
    if call.needs_key { text } else { "" }
}

pub(super) fn curl(call: &Call) -> String {
    let key = keyed(call, "-H \"Authorization: Bearer $API_KEY\" ");
    format!("curl --compressed {key}\"$BASE_URL{}\"", call.target)
}

fn python(call: &Call) -> String {
    let key = keyed(call, "request.add_header(\"Authorization\", \"Bearer \" + os.environ[\"API_KEY\"])\n");
    format!(
        r#"import json, os, sys
from urllib.error import HTTPError
from urllib.request import Request, urlopen

request = Request(os.environ["BASE_URL"] + "{}")
{key}try:
    with urlopen(request, timeout=10) as response:
        print(json.load(response))
except HTTPError as error:
    sys.exit(f"{{error.code}}: {{error.read().decode()}}")"#,
        call.target
    )
}

fn typescript(call: &Call) -> String {
    let key = keyed(call, ", {\n  headers: { Authorization: `Bearer ${process.env.API_KEY}` },\n}");
    format!(
        r#"const url = process.env.BASE_URL + "{}";
const response = await fetch(url{key});
if (!response.ok) throw new Error(`${{response.status}}: ${{await response.text()}}`);
console.log(await response.json());"#,
        call.target
    )
}

fn rust(call: &Call) -> String {
    let key = keyed(call, "\n        .bearer_auth(std::env::var(\"API_KEY\")?)");
    format!(
        r#"// Needs the crate reqwest with its feature "blocking".
fn main() -> Result<(), Box<dyn std::error::Error>> {{
    let url = std::env::var("BASE_URL")? + "{}";
    let response = reqwest::blocking::Client::new()
        .get(url){key}
        .send()?;
    let (status, body) = (response.status(), response.text()?);
    if !status.is_success() {{
        return Err(format!("{{status}}: {{body}}").into());
    }}
    println!("{{body}}");
    Ok(())
}}"#,
        call.target
    )
}

fn go(call: &Call) -> String {
    let key = keyed(call, "\trequest.Header.Set(\"Authorization\", \"Bearer \"+os.Getenv(\"API_KEY\"))\n");
    format!(
        r#"package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
)

func main() {{
	request, err := http.NewRequest("GET", os.Getenv("BASE_URL")+"{}", nil)
	if err != nil {{
		log.Fatal(err)
	}}
{key}	response, err := http.DefaultClient.Do(request)
	if err != nil {{
		log.Fatal(err)
	}}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {{
		log.Fatal(err)
	}}
	if response.StatusCode != http.StatusOK {{
		log.Fatalf("%s: %s", response.Status, body)
	}}
	fmt.Println(string(body))
}}"#,
        call.target
    )
}
