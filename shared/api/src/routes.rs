//! Every route of the API (specification 4.1) and the function that answers it, defined once. The local gateway routes
//! by this list, and tests compare the API description and the deployment with it.

/// A route of the gateway: a path template and the function behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The path. `{name}` in it stands for one segment.
    pub path: &'static str,
    pub function: &'static str,
}

/// Every route with a function of its own. Whatever matches none goes to [`DEFAULT`].
pub const ROUTES: [Route; 9] = [
    Route { path: "/v1/public/me", function: "me" },
    Route { path: "/v1/public/catalog", function: "catalog" },
    Route { path: "/v1/public/items/{id}", function: "item" },
    Route { path: "/v1/public/prices/{variant_id}", function: "prices" },
    Route { path: "/v1/public/marketplaces", function: "marketplaces" },
    Route { path: "/v1/public/listings", function: "listings" },
    Route { path: "/v1/public/orders", function: "orders" },
    Route { path: "/v1/public/wallet/balance", function: "balance" },
    Route { path: DESCRIPTION, function: DEFAULT },
];

/// Where the description is served (specification 4.12.1).
pub const DESCRIPTION: &str = "/v1/openapi.json";
/// Where the docs page is served (specification 4.12.2).
pub const DOCS: &str = "/docs";
/// The function behind the gateway's `$default` route: description, docs page, 404 for the rest.
pub const DEFAULT: &str = "openapi";

impl Route {
    /// Returns the path parameters, still percent-encoded, if the raw path matches this route.
    pub fn matches<'a>(&self, raw_path: &'a str) -> Option<Vec<(&'static str, &'a str)>> {
        let (mut template, mut path) = (self.path.split('/'), raw_path.split('/'));
        let mut parameters = Vec::new();
        loop {
            match (template.next(), path.next()) {
                (None, None) => return Some(parameters),
                (Some(expected), Some(segment)) => match expected.strip_prefix('{').and_then(|n| n.strip_suffix('}')) {
                    Some(name) if !segment.is_empty() => parameters.push((name, segment)),
                    None if expected == segment => {}
                    _ => return None,
                },
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_one_segment_and_not_empty() {
        let item = ROUTES[2];
        assert_eq!(item.matches("/v1/public/items/ak-47"), Some(vec![("id", "ak-47")]));
        for other in ["/v1/public/items/", "/v1/public/items", "/v1/public/items/a/b", "/v1/public/items/a/"] {
            assert_eq!(item.matches(other), None, "{other}");
        }
        assert_eq!(ROUTES[0].matches("/v1/public/me/"), None);
    }
}
