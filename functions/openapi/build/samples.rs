//! Samples of an operation's call in several languages, all made from the same [`Call`].
//!
//! Python, TypeScript and Go need only the language's own library. Rust needs `reqwest` with its feature `blocking`.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use yaml_serde::Value;

use super::document::{list, plain, text};

/// What is encoded in a URL: all but the unreserved characters (RFC 3986, section 2.3). Those mean nothing within the
/// quotes of a shell or of a programming language.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The host in every text. The function puts the one that the client has asked in its place.
pub(crate) const HOST: &str = "https://api.example.com";

/// The call that the samples of an operation make: its examples for all path parameters and the first query parameter.
pub(crate) struct Call {
    url: String,
    pub(crate) needs_key: bool,
}

impl Call {
    pub(crate) fn new(path: &str, operation: &Value, parameters: &[&Value]) -> Self {
        let within = |place| parameters.iter().filter(move |parameter| parameter["in"] == place);
        let encoded = |parameter: &Value| utf8_percent_encode(&plain(&parameter["example"]), ENCODED).to_string();
        let mut url = format!("{HOST}{path}");
        for parameter in within("path") {
            url = url.replace(&format!("{{{}}}", text(parameter, "name")), &encoded(parameter));
        }
        if let Some(parameter) = within("query").next() {
            url = format!("{url}?{}={}", text(parameter, "name"), encoded(parameter));
        }
        Self { url, needs_key: list(&operation["security"]).next().is_some() }
    }
}

/// Returns the samples by language.
pub(crate) fn all(call: &Call) -> [(&'static str, String); 5] {
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

pub(crate) fn curl(call: &Call) -> String {
    let key = keyed(call, "  -H \"Authorization: Bearer $API_KEY\" \\\n");
    format!("curl --compressed \\\n{key}  \"{}\"", call.url)
}

fn python(call: &Call) -> String {
    let os = keyed(call, "os, ");
    let key = keyed(call, "request.add_header(\"Authorization\", \"Bearer \" + os.environ[\"API_KEY\"])\n");
    format!(
        r#"import json, {os}sys
from urllib.error import HTTPError
from urllib.request import Request, urlopen

request = Request("{}")
{key}try:
    with urlopen(request, timeout=10) as response:
        print(json.load(response))
except HTTPError as error:
    sys.exit(f"{{error.code}}: {{error.read().decode()}}")"#,
        call.url
    )
}

fn typescript(call: &Call) -> String {
    let key = keyed(call, ", {\n  headers: { Authorization: `Bearer ${process.env.API_KEY}` },\n}");
    format!(
        r#"const response = await fetch("{}"{key});
if (!response.ok) throw new Error(`${{response.status}}: ${{await response.text()}}`);
console.log(await response.json());"#,
        call.url
    )
}

fn rust(call: &Call) -> String {
    let key = keyed(call, "\n        .bearer_auth(std::env::var(\"API_KEY\")?)");
    format!(
        r#"// Needs the crate reqwest with its feature "blocking".
fn main() -> Result<(), Box<dyn std::error::Error>> {{
    let response = reqwest::blocking::Client::new()
        .get("{}"){key}
        .send()?;
    let (status, body) = (response.status(), response.text()?);
    if !status.is_success() {{
        return Err(format!("{{status}}: {{body}}").into());
    }}
    println!("{{body}}");
    Ok(())
}}"#,
        call.url
    )
}

fn go(call: &Call) -> String {
    let os = keyed(call, "\n\t\"os\"");
    let key = keyed(call, "\trequest.Header.Set(\"Authorization\", \"Bearer \"+os.Getenv(\"API_KEY\"))\n");
    format!(
        r#"package main

import (
	"fmt"
	"io"
	"log"
	"net/http"{os}
)

func main() {{
	request, err := http.NewRequest("GET", "{}", nil)
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
        call.url
    )
}
