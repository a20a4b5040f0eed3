//! Builds HTML that is safe from injection: markup comes only from literals, and all other text is escaped.

/// A page, or part of one, under construction.
#[derive(Debug, Default)]
pub(super) struct Html(String);

/// The names and values of an element's attributes.
pub(super) type Attributes<'a> = &'a [(&'static str, &'a str)];

impl Html {
    /// Writes markup, which can only be a literal of this program.
    pub(super) fn raw(&mut self, markup: &'static str) {
        self.0.push_str(markup);
    }

    /// Writes text, escaped.
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

    /// Writes an element and its content.
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

    /// Writes an element that contains only text.
    pub(super) fn leaf(&mut self, name: &'static str, text: &str) {
        self.element(name, &[], |html| html.text(text));
    }

    /// Writes a link within the page.
    pub(super) fn jump(&mut self, anchor: &str, text: &str) {
        self.element("a", &[("href", &format!("#{anchor}"))], |html| html.text(text));
    }

    /// Writes a table, which scrolls on its own if the screen is narrow.
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

    /// Writes a block of code, which scrolls on its own.
    pub(super) fn code(&mut self, text: &str) {
        self.element("pre", &[("tabindex", "0")], |html| html.leaf("code", text));
    }

    /// Returns the markup.
    pub(super) fn into_string(self) -> String {
        self.0
    }
}

/// Converts a name for use in an anchor: lower case, with `-` for everything but ASCII letters and digits.
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
