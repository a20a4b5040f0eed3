//! STS, as far as tools ask it which account they use.

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Collected};
use hyper::body::Incoming;

use super::call::plain;
use crate::environment::ACCOUNT_ID;
use crate::server::Body;

/// Answers `GetCallerIdentity`.
pub(super) async fn answer(request: Request<Incoming>) -> Response<Body> {
    let body = request.into_body().collect().await.map(Collected::to_bytes).unwrap_or_default();
    let mut parameters = body.split(|byte| *byte == b'&');
    if !parameters.any(|parameter| parameter == b"Action=GetCallerIdentity") {
        return plain(StatusCode::BAD_REQUEST, "Of STS, this endpoint only has GetCallerIdentity.\n");
    }
    let identity = format!(
        "<Arn>arn:aws:iam::{ACCOUNT_ID}:root</Arn><UserId>{ACCOUNT_ID}</UserId><Account>{ACCOUNT_ID}</Account>"
    );
    let result = format!("<GetCallerIdentityResult>{identity}</GetCallerIdentityResult>");
    let namespace = "https://sts.amazonaws.com/doc/2011-06-15/";
    plain(
        StatusCode::OK,
        &format!(r#"<GetCallerIdentityResponse xmlns="{namespace}">{result}</GetCallerIdentityResponse>"#),
    )
}
