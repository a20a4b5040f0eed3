//! Lambda, as far as the marketplace uses it to invoke a function of the default stack, and `marketctl` to learn which
//! tables the functions use.

use common::resources::{ALIAS, Resources};
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Collected};
use hyper::body::Incoming;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::environment::{ACCOUNT_ID, REGION};
use crate::invocations::Invocations;
use crate::server::{Body, full};

/// The name of an error, and its message.
type Refused = (&'static str, String);

/// Answers a call by its method and path.
pub(super) async fn answer(invocations: &Invocations, request: Request<Incoming>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let path = head.uri.path().trim_matches('/');
    let query = head.uri.query().unwrap_or_default();
    let qualifier = query.split('&').find_map(|pair| pair.strip_prefix("Qualifier="));
    let payload = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    match (&head.method, parts.as_slice()) {
        (&Method::POST, ["functions", name, "invocations"]) => {
            match invoke(invocations, name, qualifier, &payload).await {
                Ok(Err(error)) => {
                    let failed = json!({ "errorType": "Runtime.Error", "errorMessage": error });
                    let mut response = response(Ok(failed));
                    response.headers_mut().insert("x-amz-function-error", HeaderValue::from_static("Unhandled"));
                    response
                }
                Ok(Ok(returned)) => response(Ok(returned)),
                Err(refused) => response(Err(refused)),
            }
        }
        (&Method::GET, ["functions", name, "configuration"]) => response(configuration(invocations, name)),
        (method, _) => response(Err(("InvalidParameterValueException", format!("{method} {path} is not served here")))),
    }
}

/// Invokes a function that is named by its name or its ARN, whose colons may be encoded. The alias or the version stands
/// behind the name, or in the query. The inner error is what the function failed with.
async fn invoke(
    invocations: &Invocations,
    name: &str,
    qualifier: Option<&str>,
    payload: &[u8],
) -> Result<Result<Value, String>, Refused> {
    let function = function(name).filter(|_| qualifier.is_none_or(is_known)).ok_or_else(|| not_found(name))?;
    let event = serde_json::from_slice(payload)
        .map_err(|error| ("InvalidRequestContentException", format!("The payload is no JSON: {error}")))?;
    invocations.invoke(&function, event).await.ok_or_else(|| not_found(name))
}

/// Says what only the hook knows: the names of all tables. It is there if any function is.
fn configuration(invocations: &Invocations, name: &str) -> Result<Value, Refused> {
    let tables = invocations.tables();
    if tables.is_empty() || name != Resources::new(Resources::DEFAULT_STACK).hook() {
        return Err(not_found(name));
    }
    Ok(json!({ "FunctionName": name, "Environment": { "Variables": tables } }))
}

/// Returns a function's name without that of the stack. It may be named by its name or its ARN, percent-encoded, with or
/// without its alias or a version. `None` if the default stack has no such function or alias.
fn function(named: &str) -> Option<String> {
    let named = percent_decode_str(named).decode_utf8_lossy();
    let prefix = Resources::new(Resources::DEFAULT_STACK).function("");
    let arn = format!("arn:aws:lambda:{REGION}:{ACCOUNT_ID}:function:");
    let named = named.strip_prefix(&arn).unwrap_or(&named).strip_prefix(&prefix)?;
    let (function, qualifier) = named.split_once(':').unwrap_or((named, ALIAS));
    is_known(qualifier).then(|| function.to_owned())
}

/// Returns whether a function has this alias or may have this version.
fn is_known(qualifier: &str) -> bool {
    qualifier == ALIAS || qualifier.parse::<u32>().is_ok_and(|version| version > 0)
}

fn not_found(what: &str) -> Refused {
    ("ResourceNotFoundException", format!("There is no {what}."))
}

fn response(answered: Result<Value, Refused>) -> Response<Body> {
    let (status, error, body) = match answered {
        Ok(body) => (StatusCode::OK, None, body),
        Err((name, message)) => {
            let body = json!({ "__type": name, "message": message, "Message": message });
            (StatusCode::BAD_REQUEST, Some(name), body)
        }
    };
    let mut response = Response::new(full(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(error) = error {
        response.headers_mut().insert("x-amzn-errortype", HeaderValue::from_static(error));
    }
    response
}
