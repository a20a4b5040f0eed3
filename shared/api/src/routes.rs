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

/// Paths that others have, and what has here what they have.
const RELATED: [(&str, &str); 3] =
    [("items", CATALOG.path), ("swagger.json", DESCRIPTION.path), ("wallet", BALANCE.path)];

/// Returns the path that was probably meant by one that is unknown: slashes that are too many, the beginning left out, or
/// a word that is at most two edits away. Whoever asks for no more than the host is shown the docs page.
pub fn meant(unknown: &str) -> Option<String> {
    let asked = own(unknown);
    if asked.is_empty() {
        return Some(DOCS.to_owned());
    }
    if let Some((_, path)) = RELATED.into_iter().find(|(word, _)| asked == [*word]) {
        return Some(path.to_owned());
    }
    let known = ROUTES.iter().map(|route| route.path).chain(PUBLIC);
    let near = known.filter_map(|path| Some((edits(&own(path), &asked)?, path)));
    let (_, path) = near.min_by_key(|(edits, _)| *edits)?;
    let beginning = path.split('/').count() - 1 - own(path).len();
    let segments = path.split('/').skip(1).enumerate().map(|(at, segment)| match at.checked_sub(beginning) {
        Some(at) if segment.starts_with('{') => asked[at],
        _ => segment,
    });
    Some(segments.fold(String::new(), |path, segment| path + "/" + segment))
}

/// Returns the segments of a path behind the beginning that many routes have.
fn own(path: &str) -> Vec<&str> {
    let mut segments = path.split('/').filter(|segment| !segment.is_empty()).peekable();
    for beginning in ["api", "v1", "public"] {
        segments.next_if(|segment| segment.eq_ignore_ascii_case(beginning));
    }
    segments.collect()
}

/// Returns how many edits are between a path and a known one, unless there are too many for a slip.
fn edits(known: &[&str], asked: &[&str]) -> Option<usize> {
    let one = |(known, asked): (&&str, &&str)| {
        if known.starts_with('{') {
            return Some(0);
        }
        if asked.len() > 2 * known.len() + 2 {
            return None;
        }
        Some(strsim::osa_distance(known, &asked.to_ascii_lowercase()))
            .filter(|edits| *edits <= 2 && *edits < known.len())
    };
    let left_out = known.len().checked_sub(asked.len())?;
    let (begun, rest) = known.split_at(left_out);
    if !begun.is_empty() && rest.iter().any(|segment| segment.starts_with('{')) {
        return None;
    }
    rest.iter().zip(asked).map(one).sum::<Option<usize>>().map(|edits| edits + left_out)
}

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

    #[test]
    fn an_unknown_path_names_the_one_that_is_meant() {
        for (unknown, expected) in [
            ("/v1/public/catalog/", Some("/v1/public/catalog")),
            ("//v1/public/me", Some("/v1/public/me")),
            ("/item/ak%2047", Some("/v1/public/items/ak%2047")),
            ("/v1/items/x", Some("/v1/public/items/x")),
            ("/v1/public/listing", Some("/v1/public/listings")),
            ("/v1/public/Listings/Changes/", Some("/v1/public/listings/changes")),
            ("/openapi.json", Some("/v1/openapi.json")),
            ("/docs/", Some("/docs")),
            ("/doc.md", Some("/docs.md")),
            ("/", Some("/docs")),
            ("/v1/public", Some("/docs")),
            ("/v1/public/balance", Some("/v1/public/wallet/balance")),
            ("/changes", Some("/v1/public/listings/changes")),
            ("/v1/public/items", Some("/v1/public/catalog")),
            ("/api/v1/wallet/", Some("/v1/public/wallet/balance")),
            ("/api/v1/listings", Some("/v1/public/listings")),
            ("/v1/public/users", None),
            ("/v1/public/catalog/x", None),
            ("/xx", None),
        ] {
            assert_eq!(meant(unknown).as_deref(), expected, "{unknown}");
        }
    }
}
