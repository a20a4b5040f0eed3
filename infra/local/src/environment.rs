//! The environment of the functions and of `marketctl`: every variable that they need against one AWS side.

use std::collections::BTreeMap;

use serde::Serialize;
use shared::resources::{Resources, Table};

/// Variables by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Variables(BTreeMap<String, String>);

impl Variables {
    /// The variables of the default stack at an AWS endpoint.
    ///
    /// Credentials and region of the process are kept where there are any: the endpoint may be a real one.
    pub fn at(endpoint_url: &str) -> Self {
        let resources = Resources::of(Resources::DEFAULT_STACK);
        let inherited = |name: &str, otherwise: &str| {
            let value = std::env::var(name).ok().filter(|value| !value.is_empty());
            (name.to_owned(), value.unwrap_or_else(|| otherwise.to_owned()))
        };
        let mut variables = BTreeMap::from([
            inherited("AWS_ACCESS_KEY_ID", "local"),
            inherited("AWS_SECRET_ACCESS_KEY", "local"),
            inherited("AWS_REGION", "us-east-1"),
            ("AWS_ENDPOINT_URL".to_owned(), endpoint_url.to_owned()),
        ]);
        variables.extend(std::env::var("AWS_SESSION_TOKEN").ok().map(|token| ("AWS_SESSION_TOKEN".to_owned(), token)));
        variables.extend(Table::ALL.map(|table| (table.variable().to_owned(), resources.table(table))));
        Self(variables)
    }

    /// A variable's value.
    pub fn get(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned()
    }

    /// Every variable, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}
