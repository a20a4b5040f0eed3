//! The OpenAPI document, with YAML's merge keys resolved.

use yaml_serde::{Error, Mapping, Value};

use super::errors;

/// The block of the file that holds only anchors.
const ANCHORS: &str = "x-anchors";
/// What stands before the title of a chapter.
const CHAPTER: &str = "\n\n## ";

/// The document, in the order of the file.
pub(crate) struct Document {
    root: Value,
}

/// A chapter of the guide, which is the document's description.
pub(crate) struct Chapter<'a> {
    pub(crate) title: &'a str,
    /// Its text, in Markdown.
    pub(crate) text: &'a str,
}

impl Document {
    pub(crate) fn parse(yaml: &str) -> Result<Self, Error> {
        let mut root = merged(yaml_serde::from_str(yaml)?);
        if let Some(members) = root.as_mapping_mut() {
            members.shift_remove(ANCHORS);
        }
        errors::spread(&mut root);
        Ok(Self { root })
    }

    /// Adds a page of Markdown to the guide. Its title becomes that of a chapter, and its headings stand below.
    pub(crate) fn add_chapter(&mut self, page: &str) {
        let chapter = format!("\n\n#{}", page.trim().replace("\n##", "\n###"));
        if let Value::String(guide) = &mut self.root["info"]["description"] {
            *guide += &chapter;
        }
    }

    pub(crate) fn root(&self) -> &Value {
        &self.root
    }

    pub(crate) fn title(&self) -> &str {
        text(&self.root["info"], "title")
    }

    pub(crate) fn version(&self) -> &str {
        text(&self.root["info"], "version")
    }

    pub(crate) fn guide(&self) -> &str {
        text(&self.root["info"], "description")
    }

    /// Returns what stands before the first chapter.
    pub(crate) fn introduction(&self) -> &str {
        self.guide().split(CHAPTER).next().unwrap_or_default()
    }

    pub(crate) fn chapters(&self) -> impl Iterator<Item = Chapter<'_>> {
        self.guide().split(CHAPTER).skip(1).map(|chapter| {
            let (title, text) = chapter.split_once('\n').unwrap_or((chapter, ""));
            Chapter { title, text: text.trim() }
        })
    }

    pub(crate) fn tags(&self) -> impl Iterator<Item = &str> {
        list(&self.root["tags"]).map(|tag| text(tag, "name"))
    }

    /// Returns each operation with its path.
    pub(crate) fn operations(&self) -> impl Iterator<Item = (&str, &Value)> {
        members(&self.root["paths"]).map(|(path, item)| (path, &item["get"]))
    }

    /// Returns each delivery with the name of its event.
    pub(crate) fn deliveries(&self) -> impl Iterator<Item = (&str, &Value)> {
        members(&self.root["webhooks"]).map(|(event, item)| (event, &item["post"]))
    }

    /// Returns each named schema.
    pub(crate) fn records(&self) -> impl Iterator<Item = (&str, &Value)> {
        members(&self.root["components"]["schemas"])
    }

    /// Returns the parameters of an operation, with references followed.
    pub(crate) fn parameters<'a>(&'a self, operation: &'a Value) -> Vec<&'a Value> {
        list(&operation["parameters"]).map(|parameter| self.followed(parameter)).collect()
    }

    /// Returns the responses of an operation by their status, with references followed.
    pub(crate) fn responses<'a>(&'a self, operation: &'a Value) -> Vec<(&'a str, &'a Value)> {
        let all = members(&operation["responses"]);
        let mut followed: Vec<_> = all.map(|(status, response)| (status, self.followed(response))).collect();
        followed.sort_unstable_by_key(|(status, _)| *status);
        followed
    }

    /// Returns what a reference points to, or the value itself if it is none.
    pub(crate) fn followed<'a>(&'a self, value: &'a Value) -> &'a Value {
        let Some(path) = value["$ref"].as_str() else { return value };
        path.trim_start_matches("#/").split('/').fold(&self.root, |value, member| &value[member])
    }
}

/// Returns the content of a request's or response's body.
pub(crate) fn content(body: &Value) -> &Value {
    &body["content"]["application/json"]
}

/// Returns a member that is a text, or the empty text.
pub(crate) fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or_default()
}

/// Returns a value as it stands in a query: a text without quotes.
pub(crate) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| serde_json::to_string(value).unwrap_or_default(), str::to_owned)
}

pub(crate) fn members(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_mapping().into_iter().flatten().filter_map(|(name, value)| Some((name.as_str()?, value)))
}

pub(crate) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_sequence().into_iter().flatten()
}

/// Returns the values of a closed list.
pub(crate) fn values(schema: &Value) -> Vec<&Value> {
    list(&schema["enum"]).chain(Some(&schema["const"]).filter(|only| !only.is_null())).collect()
}

/// Puts what a merge key (`<<`) refers to in its place. The library does so for one level only, and loses the order.
fn merged(value: Value) -> Value {
    match value {
        Value::Mapping(members) => {
            let mut all = Mapping::new();
            for (name, value) in members {
                match (name.as_str(), merged(value)) {
                    (Some("<<"), Value::Mapping(base)) => all.extend(base),
                    (_, value) => drop(all.insert(name, value)),
                }
            }
            Value::Mapping(all)
        }
        Value::Sequence(values) => Value::Sequence(values.into_iter().map(merged).collect()),
        plain => plain,
    }
}
