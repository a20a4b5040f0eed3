//! The links of messages.

use std::cell::Cell;

use common::ids::Link;
use serde::Deserialize;
use url::Url;

/// A link as a message may have it: a URI with a host (RFC 3986). A client that is generated from the description refuses
/// a whole page for one link that is none. [`Link`] takes more, so a stored one always stays readable.
#[derive(Deserialize)]
#[serde(try_from = "String")]
pub(super) struct WebLink(Link);

impl WebLink {
    pub(super) fn link(self) -> Link {
        self.0
    }
}

impl TryFrom<String> for WebLink {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let link = Link::try_from(text).map_err(|error| error.to_string())?;
        if !link.as_str().is_ascii() {
            return Err("must have characters outside ASCII escaped as %XX".to_owned());
        }
        // The parser mends much of what it is given, and only reports it.
        let violation = Cell::new(None);
        let note = |found| violation.set(Some(found));
        let parsed = Url::options().syntax_violation_callback(Some(&note)).parse(link.as_str());
        match (parsed, violation.into_inner()) {
            (Ok(_), None) => Ok(Self(link)),
            (Err(error), _) => Err(format!("must be a URL: {error}")),
            (_, Some(violation)) => Err(format!("must be a URL: {}", violation.description())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_what_any_client_takes_for_one_and_is_kept_as_it_was_sent() {
        for good in [
            "https://h.example",
            "HTTPS://H.example/A%20b?c=d&e='#f",
            "http://[::1]:8080/x",
            "https://xn--bcher-kva.example/(a);b=c,d/~e@f:g!$*+",
        ] {
            assert_eq!(WebLink::try_from(good.to_owned()).map(|link| link.link().to_string()), Ok(good.to_owned()));
        }
        for bad in [
            "https:///x",
            "https://[::1/x",
            "https://h:99999/",
            "https://h/a|b",
            "https://h/100%.png",
            "https://h/é.png",
            "https://h/a\\b",
            "https://h/a[b]",
            "https://u:p@h/",
            "https://\"><script>alert(1)</script>",
            "https://",
            "https://h /x",
            "ftp://h/x",
        ] {
            assert!(WebLink::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }
}
