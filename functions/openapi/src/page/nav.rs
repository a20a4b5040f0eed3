//! The navigation: a column beside the text, or hidden behind a button if the screen is narrow.

use utoipa::openapi::OpenApi;

use super::html::{Html, slug};
use super::{kind, operation, operations, webhook, webhooks};
use crate::document::guide::{self, Section};

/// Returns the anchor of a section of the guide.
pub(super) fn anchor(section: &Section) -> String {
    slug(section.title)
}

pub(super) fn write(html: &mut Html, openapi: &OpenApi) {
    html.raw("<input type=\"checkbox\" id=\"menu\"><label for=\"menu\">Contents</label>");
    html.element("nav", &[("aria-label", "Contents")], |html| {
        let sections = guide::of_calls().into_iter().chain([guide::of_webhooks()]);
        group(html, "Guide", sections.map(|section| (anchor(&section), section.title, false)));
        for tag in openapi.tags.iter().flatten() {
            let tagged =
                operations(openapi).filter(|(_, told)| told.tags.iter().flatten().any(|name| *name == tag.name));
            let entries = tagged.map(|(path, told)| (operation::anchor(told), path, true));
            group(html, &tag.name, entries);
        }
        group(html, "Events", webhooks(openapi).map(|(name, _)| (webhook::anchor(name), name, true)));
        let records = openapi.components.iter().flat_map(|components| components.schemas.keys());
        group(html, "Records", records.map(|name| (kind::anchor(name), name.as_str(), true)));
    });
}

/// Writes a heading with its links, or nothing if there are no links.
fn group<'a>(html: &mut Html, heading: &str, entries: impl Iterator<Item = (String, &'a str, bool)>) {
    let mut entries = entries.peekable();
    if entries.peek().is_none() {
        return;
    }
    html.leaf("h2", heading);
    html.element("ul", &[], |html| {
        for (anchor, text, is_code) in entries {
            let class: &[_] = if is_code { &[("class", "name")] } else { &[] };
            html.element("li", class, |html| html.jump(&anchor, text.trim_start_matches("/v1/public")));
        }
    });
}
