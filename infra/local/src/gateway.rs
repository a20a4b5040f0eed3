//! API Gateway on one machine. It turns each HTTP request into an HTTP API event (payload format 2.0) for the
//! function of its route, and the function's answer into an HTTP response.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use api::Handler;
use api::gateway::Event;
use api::routes::{DEFAULT, ROUTES};
use common::runtime::Error;
use http::header::{HeaderMap, HeaderValue};
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use percent_encoding::percent_decode_str;
use serde_json::json;
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::inbox::Inbox;
use crate::malformed::{Explained, message};
use crate::server::{Body, Server, full, plain};

/// The functions by name.
pub type Functions = HashMap<&'static str, Arc<dyn Handler>>;

/// Serves the functions on a listener, and the inbox below its own paths.
pub fn serve(listener: TcpListener, functions: Functions, inbox: Inbox) -> io::Result<Server> {
    if let Some(route) = ROUTES.iter().find(|route| !functions.contains_key(route.function)) {
        return Err(io::Error::other(format!("no function {} for {}", route.function, route.path)));
    }
    let parts = Arc::new((functions, inbox));
    Server::start_for_this_machine(listener, Explained::new, move |request| {
        let parts = Arc::clone(&parts);
        async move {
            let (functions, inbox) = &*parts;
            if Inbox::serves(request.uri().path()) {
                inbox.answer(request).await
            } else {
                answer(functions, &request).await
            }
        }
    })
}

async fn answer(functions: &Functions, request: &Request<Incoming>) -> Response<Body> {
    let Some((function, request)) = routed(request) else {
        return failure(StatusCode::BAD_REQUEST, "Bad Request");
    };
    let (Some(handler), Ok(request)) = (functions.get(function).cloned(), request) else {
        return failure(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error");
    };
    // The function runs in a task of its own. As in Lambda, a client that disconnects does not stop it, and a panic
    // fails only this request.
    match tokio::spawn(async move { handler.handle(request).await }).await {
        Ok(response) => response.map(|body| full(body.to_vec())),
        Err(_) => failure(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error"),
    }
}

/// Returns the name of the function that handles a request, and the request as the function gets it. `None` if the
/// gateway refuses the path.
pub(crate) fn routed<B>(request: &Request<B>) -> Option<(&'static str, Result<api::Request, Error>)> {
    let path = routed_path(request.uri().path())?;
    let matched = ROUTES.iter().find_map(|route| route.matches(&path).map(|parameters| (route, parameters)));
    let (function, route_key, parameters) = match matched {
        Some((route, parameters)) => (route.function, format!("ANY {}", route.path), parameters),
        None => (DEFAULT, "$default".to_owned(), Vec::new()),
    };
    let parameters: HashMap<_, _> = parameters.into_iter().collect();
    let event = json!({
        "version": "2.0",
        "routeKey": route_key,
        "rawPath": path,
        "rawQueryString": request.uri().query().unwrap_or_default(),
        "headers": joined(request.headers()),
        "pathParameters": Some(&parameters).filter(|parameters| !parameters.is_empty()),
        "isBase64Encoded": false,
        "requestContext": {
            "routeKey": route_key,
            "stage": "$default",
            "requestId": Uuid::new_v4(),
            "http": { "method": request.method().as_str(), "path": path, "protocol": "HTTP/1.1" },
        },
    });
    let event = serde_json::from_value::<Event>(event).map_err(Error::from);
    Some((function, event.and_then(api::Request::try_from)))
}

/// Returns the path that the gateway looks for among its routes and hands to functions, or `None` if it answers 400.
///
/// It decodes the path, drops what follows a question mark, and decodes it once more. AWS's documentation only says that
/// the path is decoded. These were captured in July 2026 (`vokerhttp/testdata` of <https://github.com/hotsock/voker>),
/// behind `$default`. That routes are matched by the same path is assumed.
///
/// | sent | function gets |
/// |---|---|
/// | `/space%20value` | `/space value` |
/// | `/hash%23value` | `/hash#value` |
/// | `/slash%2Fvalue`, `/slash%252Fvalue` | `/slash/value` |
/// | `/question%3Fvalue` | `/question` |
/// | `/question%253Fvalue` | `/question?value` |
/// | `/percent%2525value` | `/percent%value` |
/// | `/percent%25done` | nothing: 400 |
fn routed_path(path: &str) -> Option<String> {
    let decoded = decode(path)?;
    decode(decoded.split('?').next().unwrap_or_default())
}

/// Decodes a path, or returns `None` if one of its per cent signs begins no escape.
fn decode(path: &str) -> Option<String> {
    let mut behind_signs = path.split('%').skip(1);
    let is_escape = |behind: &str| behind.bytes().take_while(u8::is_ascii_hexdigit).count() >= 2;
    behind_signs.all(is_escape).then(|| percent_decode_str(path).decode_utf8_lossy().into_owned())
}

/// Joins repeated headers by commas, as API Gateway does.
fn joined(headers: &HeaderMap) -> HashMap<&str, String> {
    let joined = |name| {
        let values: Vec<_> =
            headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
        values.join(",")
    };
    headers.keys().map(|name| (name.as_str(), joined(name))).collect()
}

/// An answer that the gateway gives by itself, in API Gateway's form.
fn failure(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = plain(status, &message(text));
    response.headers_mut().insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use api::gateway::RequestExt;

    use super::*;

    /// Returns the function, the path that it gets, and the item's id.
    fn gets(path: &str) -> Option<(&'static str, String, Option<String>)> {
        let request = Request::builder().uri(format!("{path}?q=%3F&é=#")).body(()).unwrap();
        let (function, request) = routed(&request)?;
        let request = request.unwrap();
        assert_eq!(request.uri().query(), Some("q=%3F&%C3%A9="), "{path}");
        let id = request.path_parameters().first("id").map(str::to_owned);
        Some((function, request.raw_http_path().to_owned(), id))
    }

    #[test]
    fn a_path_is_decoded_as_it_was_captured() {
        for (sent, got) in [
            ("/plain", Some("/plain")),
            ("/space%20value", Some("/space value")),
            ("/hash%23value", Some("/hash#value")),
            ("/slash%2Fvalue", Some("/slash/value")),
            ("/slash%252Fvalue", Some("/slash/value")),
            ("/question%3Fvalue", Some("/question")),
            ("/question%253Fvalue", Some("/question?value")),
            ("/unicode-%CE%BB-%E4%B8%96%E7%95%8C", Some("/unicode-λ-世界")),
            ("/percent%2525value", Some("/percent%value")),
            ("/percent%25done", None),
        ] {
            assert_eq!(gets(sent).map(|(_, path, _)| path).as_deref(), got, "{sent}");
        }
    }

    #[test]
    fn the_decoded_path_is_routed() {
        for (sent, function, id) in [
            ("/v1/public/items/a%20b", "item", Some("a b")),
            ("/v1/public/items/%E2%98%85", "item", Some("★")),
            ("/v1/public/items/a%253Fb", "item", Some("a?b")),
            ("/v1/public/items/a%23b", "item", Some("a#b")),
            ("/v1/public/items/a%3Fb=c", "item", Some("a")),
            ("/v1/public/items/a%252Fb", DEFAULT, None),
            ("/v1/public/items/%3Fb", DEFAULT, None),
            ("/v1%2Fpublic%2Fme", "me", None),
        ] {
            let (routed, _, found) = gets(sent).unwrap();
            assert_eq!((routed, found.as_deref()), (function, id), "{sent}");
        }
    }
}
