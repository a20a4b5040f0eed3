//! HTML that cannot be injected into: markup comes from literals, everything else goes in escaped.

/// A page, or a part of one, while it is written.
#[derive(Debug, Default)]
pub(super) struct Html(String);

/// Names and values of an element's attributes.
pub(super) type Attributes<'a> = &'a [(&'static str, &'a str)];

impl Html {
    /// Markup that stands in the source.
    pub(super) fn raw(&mut self, markup: &'static str) {
        self.0.push_str(markup);
    }

    /// Text.
    pub(super) fn text(&mut self, text: &str) {
        for character in text.chars() {
            match character {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                other => self.0.push(other),
            }
        }
    }

    /// An element and what it holds.
    pub(super) fn element(&mut self, name: &'static str, attributes: Attributes<'_>, inside: impl FnOnce(&mut Self)) {
        self.raw("<");
        self.raw(name);
        for (attribute, value) in attributes {
            self.raw(" ");
            self.raw(attribute);
            self.raw("=\"");
            self.text(value);
            self.raw("\"");
        }
        self.raw(">");
        inside(self);
        self.raw("</");
        self.raw(name);
        self.raw(">");
    }

    /// An element that holds text alone.
    pub(super) fn leaf(&mut self, name: &'static str, text: &str) {
        self.element(name, &[], |html| html.text(text));
    }

    /// A link within the page.
    pub(super) fn jump(&mut self, anchor: &str, text: &str) {
        self.element("a", &[("href", &format!("#{anchor}"))], |html| html.text(text));
    }

    /// A table that scrolls by itself where the screen is narrow.
    pub(super) fn table(&mut self, headings: &[&str], rows: impl FnOnce(&mut Self)) {
        self.element("div", &[("class", "table"), ("tabindex", "0")], |html| {
            html.element("table", &[], |html| {
                html.element("thead", &[], |html| {
                    html.element("tr", &[], |html| {
                        for heading in headings {
                            html.element("th", &[("scope", "col")], |html| html.text(heading));
                        }
                    });
                });
                html.element("tbody", &[], rows);
            });
        });
    }

    /// A block of code that scrolls by itself.
    pub(super) fn code(&mut self, text: &str) {
        self.element("pre", &[("tabindex", "0")], |html| html.leaf("code", text));
    }

    /// The markup.
    pub(super) fn into_string(self) -> String {
        self.0
    }
}

/// A name as part of an anchor.
pub(super) fn slug(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_attributes_are_escaped() {
        let mut html = Html::default();
        html.element("a", &[("href", "\"><script>")], |html| html.text("<b>&'"));
        assert_eq!(html.into_string(), "<a href=\"&quot;&gt;&lt;script&gt;\">&lt;b&gt;&amp;&#39;</a>");
    }
}
