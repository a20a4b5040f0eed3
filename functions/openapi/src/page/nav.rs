//! The navigation: a column beside the text, or hidden behind a button if the screen is narrow.

use maud::{Markup, html};
use utoipa::openapi::OpenApi;

use super::elements::{jump, slug};
use super::parts::{operations, webhooks};
use super::{kind, operation, webhook};
use crate::document::guide::{self, Section};

/// Returns the anchor of a section of the guide.
pub(super) fn anchor(section: &Section) -> String {
    slug(section.title)
}

pub(super) fn render(openapi: &OpenApi) -> Markup {
    let sections = guide::of_calls().into_iter().chain([guide::of_webhooks()]);
    let guide = group("Guide", sections.map(|section| (anchor(&section), section.title, false)));
    let tags = openapi.tags.iter().flatten().map(|tag| {
        let tagged = operations(openapi).filter(|(_, of)| of.tags.iter().flatten().any(|name| *name == tag.name));
        group(&tag.name, tagged.map(|(path, of)| (operation::anchor(of), path, true)))
    });
    let events = group("Events", webhooks(openapi).map(|(name, _)| (webhook::anchor(name), name, true)));
    let records = openapi.components.iter().flat_map(|components| components.schemas.keys());
    let records = group("Records", records.map(|name| (kind::anchor(name), name.as_str(), true)));
    html! {
        nav aria-label="Contents" {
            input type="checkbox" id="menu";
            label for="menu" { "Contents" }
            div.links {
                (guide)
                @for tag in tags { (tag) }
                (events)
                (records)
            }
        }
    }
}

/// Renders a heading with its links, or nothing if there are no links. A link has an anchor, a text, and whether the
/// text is code.
fn group<'a>(heading: &str, links: impl Iterator<Item = (String, &'a str, bool)>) -> Markup {
    let mut links = links.peekable();
    html! {
        @if links.peek().is_some() {
            h2 { (heading) }
            ul {
                @for (anchor, text, is_code) in links {
                    li class=[is_code.then_some("name")] { (jump(&anchor, text.trim_start_matches("/v1/public"))) }
                }
            }
        }
    }
}
