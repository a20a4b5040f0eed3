//! API Gateway on one machine. It turns each HTTP request into an HTTP API event (payload format 2.0) for the
//! function of its route, and the function's answer into an HTTP response.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use api::routes::{DEFAULT, ROUTES};
use api::{GatewayEvent, Handler, Response as LambdaResponse};
use aws_lambda_events::encodings::Body as LambdaBody;
use http::header::{HeaderMap, HeaderValue};
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use percent_encoding::percent_decode_str;
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::inbox::Inbox;
use crate::malformed::{Explained, message};
use crate::server::{Body, Server, full, plain};
use crate::switches::{Switches, Trigger};

/// The functions by name.
pub type Functions = HashMap<&'static str, Arc<dyn Handler>>;

/// Serves the functions on a listener, and the inbox below its own paths.
pub fn serve(listener: TcpListener, functions: Functions, switches: Switches, inbox: Inbox) -> io::Result<Server> {
    if let Some(route) = ROUTES.iter().find(|route| !functions.contains_key(route.function)) {
        return Err(io::Error::other(format!("no function {} for {}", route.function, route.path)));
    }
    let parts = Arc::new((functions, switches, inbox));
    Server::start_for_this_machine(listener, Explained::new, move |request| {
        let parts = Arc::clone(&parts);
        async move {
            let (functions, switches, inbox) = &*parts;
            if Inbox::serves(request.uri().path()) {
                inbox.answer(request).await
            } else {
                answer(functions, switches, &request).await
            }
        }
    })
}

async fn answer(functions: &Functions, switches: &Switches, request: &Request<Incoming>) -> Response<Body> {
    let (function, event) = event(request);
    let Some(handler) = functions.get(function).cloned() else {
        return failure(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error");
    };
    let Some(pass) = switches.of(Trigger::Requests(function)).try_enter() else {
        return failure(StatusCode::SERVICE_UNAVAILABLE, "Service Unavailable");
    };
    // The function runs in a task of its own. As in Lambda, a client that disconnects does not stop it, and a panic
    // fails only this request.
    let handling = tokio::spawn(async move {
        let _pass = pass;
        handler.handle(event).await
    });
    match handling.await {
        Ok(response) => convert(response),
        Err(_) => failure(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error"),
    }
}

/// Returns the event of a request, and the name of the function that handles it.
pub(crate) fn event<B>(request: &Request<B>) -> (&'static str, GatewayEvent) {
    let path = routed_path(request.uri().path());
    let matched = ROUTES.iter().find_map(|route| route.matches(&path).map(|parameters| (route, parameters)));
    let (function, route_key, parameters) = match matched {
        Some((route, parameters)) => (route.function, format!("ANY {}", route.path), parameters),
        None => (DEFAULT, "$default".to_owned(), Vec::new()),
    };
    let mut event = GatewayEvent::default();
    event.version = Some("2.0".to_owned());
    event.route_key = Some(route_key.clone());
    event.raw_path = Some(path.clone());
    event.raw_query_string = Some(request.uri().query().unwrap_or_default().to_owned());
    event.path_parameters = parameters.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    event.headers = joined(request.headers());
    let context = &mut event.request_context;
    context.route_key = Some(route_key);
    context.stage = Some("$default".to_owned());
    context.request_id = Some(Uuid::new_v4().to_string());
    context.http.method = request.method().clone();
    context.http.path = Some(path);
    context.http.protocol = Some("HTTP/1.1".to_owned());
    (function, event)
}

/// Returns the path that the gateway looks for among its routes and hands to functions. It decodes the path once, before
/// all else: an encoded slash ends a segment, and an encoded question mark ends the path. That is what people see who
/// published events of HTTP APIs. AWS's documentation only says that the path is decoded.
fn routed_path(path: &str) -> String {
    let decoded = percent_decode_str(path).decode_utf8_lossy();
    decoded.split('?').next().unwrap_or_default().to_owned()
}

/// Joins repeated headers by commas, as API Gateway does.
fn joined(headers: &HeaderMap) -> HeaderMap {
    let mut joined = HeaderMap::new();
    for name in headers.keys() {
        let values: Vec<&[u8]> = headers.get_all(name).iter().map(HeaderValue::as_bytes).collect();
        if let Ok(value) = HeaderValue::from_bytes(&values.join(&b","[..])) {
            joined.insert(name.clone(), value);
        }
    }
    joined
}

fn convert(response: LambdaResponse) -> Response<Body> {
    let body = match response.body {
        Some(LambdaBody::Text(text)) => text.into_bytes(),
        Some(LambdaBody::Binary(bytes)) => bytes,
        _ => Vec::new(),
    };
    let status = u16::try_from(response.status_code).ok().and_then(|code| StatusCode::from_u16(code).ok());
    let mut converted = Response::new(full(body));
    *converted.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    *converted.headers_mut() = response.headers;
    converted
}

/// An answer that the gateway gives by itself, in API Gateway's form.
fn failure(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = plain(status, &message(text));
    response.headers_mut().insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_decoded_once_and_then_routed() {
        let items = "/v1/public/items";
        for (uri, function, path, id) in [
            (format!("{items}/a%20b"), "item", format!("{items}/a b"), Some("a b")),
            (format!("{items}/%E2%98%85"), "item", format!("{items}/★"), Some("★")),
            (format!("{items}/a%252Fb"), "item", format!("{items}/a%2Fb"), Some("a%2Fb")),
            (format!("{items}/a%2Fb"), DEFAULT, format!("{items}/a/b"), None),
            (format!("{items}/a%3Fb=c"), "item", format!("{items}/a"), Some("a")),
            (format!("{items}/%3Fb"), DEFAULT, format!("{items}/"), None),
            ("/v1%2Fpublic%2Fme".to_owned(), "me", "/v1/public/me".to_owned(), None),
        ] {
            let request = Request::builder().uri(format!("{uri}?q=%3F")).body(()).unwrap();
            let (routed, event) = event(&request);
            assert_eq!((routed, event.raw_path.as_deref()), (function, Some(path.as_str())), "{uri}");
            assert_eq!(event.raw_query_string.as_deref(), Some("q=%3F"), "{uri}");
            assert_eq!(event.path_parameters.get("id").map(String::as_str), id, "{uri}");
        }
    }
}
