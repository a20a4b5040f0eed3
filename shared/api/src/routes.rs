//! Every route of the API (specification 4.1), the function that answers it, the budget of its requests and who may keep
//! its answers, each defined once. Endpoints and the API description refer to these constants, the local gateway routes
//! by their list, and tests compare the deployment with it.

use common::scope::{Budget, Scope};

use super::reply::CacheControl;

/// A route of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The path. `{name}` in it stands for one segment.
    pub path: &'static str,
    /// The function that answers.
    pub function: &'static str,
    /// The budget that a request is counted against, or `None` if it needs no key. It also decides which scope a key
    /// needs.
    pub budget: Option<Budget>,
    /// Who may keep an answer, and for how long.
    pub cache: CacheControl,
}

pub const ME: Route = keyed("/v1/public/me", "me", Budget::Me, CacheControl::PrivateNoCache);
pub const CATALOG: Route = keyed("/v1/public/catalog", "catalog", CATALOG_READ, CacheControl::PrivateNoCache);
pub const ITEM: Route = keyed("/v1/public/items/{id}", "item", CATALOG_READ, CacheControl::PrivateNoCache);
pub const PRICES: Route = keyed("/v1/public/prices/{variant_id}", "prices", CATALOG_READ, CacheControl::PrivateNoCache);
pub const MARKETPLACES: Route =
    keyed("/v1/public/marketplaces", "marketplaces", CATALOG_READ, CacheControl::PrivateNoCache);
pub const LISTINGS: Route =
    keyed("/v1/public/listings", "listings", Budget::Scope(Scope::ListingsRead), CacheControl::PrivateNoCache);
pub const CHANGES: Route =
    keyed("/v1/public/listings/changes", "changes", Budget::Scope(Scope::ListingsRead), CacheControl::PrivateNoCache);
pub const ORDERS: Route = keyed("/v1/public/orders", "orders", Budget::Scope(Scope::OrdersRead), CacheControl::NoStore);
pub const BALANCE: Route =
    keyed("/v1/public/wallet/balance", "balance", Budget::Scope(Scope::WalletRead), CacheControl::NoStore);
/// Where the description is served (specification 4.12.1).
pub const DESCRIPTION: Route =
    Route { path: "/v1/openapi.json", function: DEFAULT, budget: None, cache: CacheControl::Public };

/// Every route with a path of its own. Whatever matches none goes to [`DEFAULT`].
pub const ROUTES: [Route; 10] =
    [ME, CATALOG, ITEM, PRICES, MARKETPLACES, LISTINGS, CHANGES, ORDERS, BALANCE, DESCRIPTION];

const CATALOG_READ: Budget = Budget::Scope(Scope::CatalogRead);

const fn keyed(path: &'static str, function: &'static str, budget: Budget, cache: CacheControl) -> Route {
    Route { path, function, budget: Some(budget), cache }
}

/// Where the docs page is served (specification 4.12.2).
pub const DOCS: &str = "/docs";
/// Where the docs page is served as Markdown (specification 4.12.6).
pub const MARKDOWN: &str = "/docs.md";
/// Where programs that read find what to fetch (specification 4.12.6).
pub const LLMS: &str = "/llms.txt";
/// Every path of the description, which needs no key.
pub const PUBLIC: [&str; 4] = [DESCRIPTION.path, DOCS, MARKDOWN, LLMS];
/// The function behind the gateway's `$default` route: description, docs page, 404 for the rest.
pub const DEFAULT: &str = "openapi";

impl Route {
    /// Returns the path parameters if the path, which the gateway has decoded, matches this route.
    pub fn matches<'a>(&self, path: &'a str) -> Option<Vec<(&'static str, &'a str)>> {
        let (mut template, mut path) = (self.path.split('/'), path.split('/'));
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
        assert_eq!(ITEM.matches("/v1/public/items/ak-47"), Some(vec![("id", "ak-47")]));
        for other in ["/v1/public/items/", "/v1/public/items", "/v1/public/items/a/b", "/v1/public/items/a/"] {
            assert_eq!(ITEM.matches(other), None, "{other}");
        }
        assert_eq!(ME.matches("/v1/public/me/"), None);
    }
}
