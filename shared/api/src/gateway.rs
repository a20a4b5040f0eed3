//! API Gateway's side of a function: its event (HTTP API, payload format 2.0) as a [`lambda_http`] request, and a
//! response as the answer that it takes.
//!
//! The conversion of `lambda_http` itself takes the path of an event for that of a URI. But the gateway has decoded it:
//! `a#b` would lose the query, and `a?b` would change it. Here the path is escaped again.

use std::collections::HashMap;
use std::fmt::{self, Formatter};

use common::runtime::Error;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use http::uri::{PathAndQuery, Uri};
use lambda_http::aws_lambda_events::apigw::{ApiGatewayV2httpRequestContext, ApiGatewayV2httpResponse};
use lambda_http::request::RequestContext;
pub use lambda_http::{Body, Request, RequestExt};
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

use crate::origin::ORIGIN_HEADER;

/// What a function of the API answers.
pub type Response = lambda_http::Response<Body>;

/// What stands in a path as it is (RFC 3986, section 3.3). The per cent sign does not: the gateway has decoded the path.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b':')
    .remove(b'@')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=');
/// What a query cannot hold. The gateway does not decode it, so all else stays as the client sent it.
const QUERY: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>');

/// An event of the gateway. It has no body: no method that takes one is answered.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Decoded.
    raw_path: String,
    /// As it was sent.
    raw_query_string: Option<String>,
    headers: Option<Headers>,
    /// Decoded.
    path_parameters: Option<HashMap<String, String>>,
    request_context: ApiGatewayV2httpRequestContext,
}

/// The headers that are some. What clients send and nobody reads must not fail a request, so the rest is left out.
struct Headers(HeaderMap);

impl<'de> Deserialize<'de> for Headers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;

        impl<'de> Visitor<'de> for Pairs {
            type Value = HeaderMap;

            fn expecting(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
                formatter.write_str("headers")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut pairs: M) -> Result<HeaderMap, M::Error> {
                let mut headers = HeaderMap::with_capacity(pairs.size_hint().unwrap_or(16));
                while let Some((name, value)) = pairs.next_entry::<String, Option<String>>()? {
                    let name = HeaderName::from_bytes(name.as_bytes());
                    let value = value.map(|value| HeaderValue::from_bytes(value.as_bytes()));
                    if let (Ok(name), Some(Ok(mut value))) = (name, value) {
                        value.set_sensitive(name == AUTHORIZATION || name == ORIGIN_HEADER);
                        headers.insert(name, value);
                    }
                }
                Ok(headers)
            }
        }

        deserializer.deserialize_map(Pairs).map(Self)
    }
}

impl TryFrom<Event> for Request {
    type Error = Error;

    fn try_from(event: Event) -> Result<Self, Error> {
        let path = utf8_percent_encode(&event.raw_path, PATH);
        let uri = match event.raw_query_string.as_deref().unwrap_or_default() {
            "" => path.to_string(),
            query => format!("{path}?{}", utf8_percent_encode(query, QUERY)),
        };
        // The text is not repeated: it may hold anything.
        let uri = PathAndQuery::try_from(uri).map_err(|_| "the event's path and query are no URI")?;
        let mut request = Self::new(Body::Empty);
        *request.method_mut() = event.request_context.http.method.clone();
        *request.uri_mut() = Uri::from(uri);
        *request.headers_mut() = event.headers.map(|Headers(headers)| headers).unwrap_or_default();
        Ok(request
            .with_raw_http_path(event.raw_path)
            .with_path_parameters(event.path_parameters.unwrap_or_default())
            .with_request_context(RequestContext::ApiGatewayV2(event.request_context)))
    }
}

/// Returns what of the gateway's context a function reads. A request that did not come through it has none.
pub(crate) fn context(request: &Request) -> Option<&ApiGatewayV2httpRequestContext> {
    match request.request_context_ref() {
        Some(RequestContext::ApiGatewayV2(context)) => Some(context),
        _ => None,
    }
}

/// Converts a response into the answer that the gateway takes.
pub(crate) fn answer(response: Response) -> ApiGatewayV2httpResponse {
    let (parts, body) = response.into_parts();
    let mut answer = ApiGatewayV2httpResponse::default();
    answer.status_code = i64::from(parts.status.as_u16());
    answer.headers = parts.headers;
    answer.is_base64_encoded = matches!(body, Body::Binary(_));
    answer.body = Some(body).filter(|body| !matches!(body, Body::Empty));
    answer
}
