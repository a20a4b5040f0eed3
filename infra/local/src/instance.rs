//! One instance of every function behind one gateway, and of the function that is invoked directly.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use account::Account;
use api::Handler;
use api::pipeline::Requests;
use common::aws::Missing;
use common::runtime::Service;
use futures_util::future::join_all;
use webhooks::guard::{LOOPBACK_VARIABLE, Policy};

use crate::gateway::{self, Functions};
use crate::host::{Host, log_failed_warm_up};
use crate::inbox::Inbox;
use crate::server::Server;

/// Running functions. They stop when this is dropped.
pub struct Instance {
    /// The base URL of the API.
    pub base_url: String,
    _server: Server,
}

impl Instance {
    /// Builds every function, warms each up, and serves them.
    pub async fn start(listen: SocketAddr, host: &Host) -> io::Result<Self> {
        let listener = Server::bind(listen).await?;
        let functions = functions(host).map_err(io::Error::other)?;
        let inbox = host.unobserved(Inbox::new).map_err(io::Error::other)?;
        let warm_ups = join_all(functions.values().map(|handler| handler.warm_up()));
        let (warmed, ()) = tokio::join!(warm_ups, host.log_problems());
        warmed.into_iter().for_each(log_failed_warm_up);
        for (&name, handler) in &functions {
            host.invocations().offer(name, Requests(Arc::clone(handler)));
        }
        // What it uses is checked together with what the workers use.
        host.invocations().offer("account", account(host).map_err(io::Error::other)?);
        let server = gateway::serve(listener, functions, inbox)?;
        Ok(Self { base_url: server.url(), _server: server })
    }
}

fn functions(host: &Host) -> Result<Functions, Missing> {
    Ok(Functions::from([
        function(host, "me", me::api)?,
        function(host, "catalog", catalog::api)?,
        function(host, "item", item::api)?,
        function(host, "prices", prices::api)?,
        function(host, "marketplaces", marketplaces::api)?,
        function(host, "listings", listings::api)?,
        function(host, "changes", changes::api)?,
        function(host, "orders", orders::api)?,
        function(host, "balance", balance::api)?,
        function(host, "openapi", openapi::api)?,
    ]))
}

/// Builds the account's settings. Endpoints may be on this machine if the variables say so, as `marketctl` reads them.
fn account(host: &Host) -> Result<Account, Missing> {
    let allows_loopback = host.unobserved(|service| Ok(service.lambda_variable(LOOPBACK_VARIABLE)))?;
    let policy = if allows_loopback.as_deref() == Some("1") { Policy::with_loopback() } else { Policy::public() };
    host.function("account", |service| account::worker(service, policy))
}

fn function<H: Handler + 'static>(
    host: &Host,
    name: &'static str,
    build: impl FnOnce(&Service<'_>) -> Result<H, Missing>,
) -> Result<(&'static str, Arc<dyn Handler>), Missing> {
    Ok((name, Arc::new(host.function(name, build)?)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use api::routes::{ROUTES, Route};
    use api::{Api, CacheControl, Endpoint, Input, params};
    use serde_json::{Value, json};

    use super::*;

    /// Compares an endpoint's operation in the description with what the endpoint declares, and returns its route. The
    /// endpoint must refuse `bad_path` and `bad_query` with the same fields as the example of a 400.
    fn described<E: Endpoint>(
        _: fn(&Service<'_>) -> Result<Api<E>, Missing>,
        bad_path: &[(&str, &str)],
        bad_query: &str,
    ) -> Route {
        let Route { path, budget, cache, .. } = E::ROUTE;
        let budget = budget.unwrap();
        let document: Value = serde_json::from_str(openapi::OPENAPI).unwrap();
        let operation = &document["paths"][path]["get"];
        assert_eq!(operation.get("x-required-scope"), budget.scope().map(|scope| json!(scope)).as_ref(), "{path}");
        let spent = error(operation, "429", "rate_limits.exceeded");
        assert_eq!(spent["params"]["scope"], budget.as_str(), "{path}");
        if let Some(scope) = budget.scope() {
            let missing = error(operation, "403", "api_keys.scope_missing");
            assert_eq!(missing["params"]["scope"], scope.as_str(), "{path}");
        }

        let cache = match cache {
            CacheControl::PrivateNoCache => "#/components/headers/Cache-Control.private",
            CacheControl::NoStore => "#/components/headers/Cache-Control.no-store",
            CacheControl::Public => "#/components/headers/Cache-Control.public",
        };
        for status in ["200", "304"] {
            assert_eq!(operation["responses"][status]["headers"]["Cache-Control"]["$ref"], cache, "{path}");
        }

        let parameters = operation["parameters"].as_array().unwrap().iter().map(|parameter| {
            let reference = parameter.get("$ref").and_then(Value::as_str);
            reference.map_or(parameter, |reference| document.pointer(&reference[1..]).unwrap())
        });
        let named = |place: &str| -> BTreeSet<&str> {
            parameters.clone().filter(|p| p["in"] == place).filter_map(|p| p["name"].as_str()).collect()
        };
        assert_eq!(named("query"), E::Input::QUERY.iter().copied().collect(), "{path}");
        let in_template = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        assert_eq!(named("path"), in_template.collect(), "{path}");

        let bad_path: Vec<_> = bad_path.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let Err(problems) = params::parse::<E::Input>(&bad_path, bad_query) else { panic!("{path}: not refused") };
        assert_eq!(error(operation, "400", "request.invalid")["fields"], json!(problems), "{path}");
        E::ROUTE
    }

    fn error<'a>(operation: &'a Value, status: &str, code: &str) -> &'a Value {
        &operation["responses"][status]["content"]["application/json"]["examples"][code]["value"]["error"]
    }

    #[test]
    fn each_endpoint_is_described_as_it_is() {
        let described = [
            described(me::api, &[], "verbose=1"),
            described(catalog::api, &[], "page_size=500&knid=skin"),
            described(item::api, &[("id", "ak-47-redline")], "include=variants"),
            described(prices::api, &[("variant_id", "ak-47")], ""),
            described(marketplaces::api, &[], "page=2"),
            described(listings::api, &[], "min_price=20&max_price=10&sort=cheapest"),
            described(changes::api, &[], "since=7"),
            described(orders::api, &[], "page=0&page_size=10&page_size=20"),
            described(balance::api, &[], "currency=EUR"),
        ];
        // An endpoint that is missing here, or that names the route of another, shows as a difference.
        let keyed: Vec<_> = ROUTES.into_iter().filter(|route| route.budget.is_some()).collect();
        assert_eq!(described.as_slice(), keyed);
    }
}
