//! The page. It is self-contained and holds nothing of a delivery; the script inserts deliveries as text only.

use http::header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY};
use http::{HeaderValue, Response, StatusCode};
use uuid::Uuid;

use super::reply;
use crate::server::Body;

const PAGE: &str = include_str!("page/page.html");
const STYLE: [&str; 2] = [include_str!("page/style.css"), include_str!("page/deliveries.css")];
const SCRIPT: &str = include_str!("page/script.js");

/// Returns the page. Its policy lets it run its own script and connect to its own origin, and nothing else.
pub(super) fn show() -> Response<Body> {
    let nonce = Uuid::new_v4().simple().to_string();
    let policy = format!(
        "default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let Ok(policy) = HeaderValue::try_from(policy) else {
        return reply::text(StatusCode::INTERNAL_SERVER_ERROR, "");
    };
    let page = PAGE.replace("{nonce}", &nonce).replace("{style}", &STYLE.concat()).replace("{script}", SCRIPT);
    let mut response = reply::html(page);
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    response.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_fetches_nothing_and_makes_no_markup_of_what_arrived() {
        for foreign in ["http:", "https:", "src=", "@import", "url(", "<link"] {
            assert!(![PAGE, &STYLE.concat(), SCRIPT].concat().contains(foreign), "{foreign}");
        }
        let sinks = ["HTML", "document.write", "eval", "Function(", "setAttribute", "DOMParser", "createContextual"];
        for sink in sinks {
            assert!(!SCRIPT.contains(sink), "{sink}");
        }
        assert!(SCRIPT.contains(".textContent = "));
    }

    #[test]
    fn style_and_script_stand_in_it_under_a_nonce_of_its_own() {
        let nonce = |response: &Response<Body>| {
            let policy = response.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap();
            policy.split("script-src 'nonce-").nth(1).unwrap()[..32].to_owned()
        };
        assert_ne!(nonce(&show()), nonce(&show()));
        for part in ["<style nonce=\"{nonce}\">\n{style}</style>", "<script nonce=\"{nonce}\">\n{script}</script>"] {
            assert!(PAGE.contains(part), "{part}");
        }
        assert!(!SCRIPT.contains("</"), "this would end the script element");
    }
}
