//! Tables and blocks of code.

/// Returns a table. Texts of several lines become one line.
pub(super) fn table<const N: usize>(headings: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut text = row(headings.map(str::to_owned));
    text.push_str(&row([(); N].map(|()| "---".to_owned())));
    rows.into_iter().for_each(|cells| text.push_str(&row(cells)));
    text
}

fn row<const N: usize>(cells: [String; N]) -> String {
    let cells = cells.map(|cell| cell.trim().replace('\n', " ").replace('|', "\\|"));
    format!("| {} |\n", cells.join(" | "))
}

/// Returns a text as code, or nothing if it is empty.
pub(super) fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{text}`") }
}

/// Returns a block of code.
pub(super) fn block(language: &str, text: &str) -> String {
    format!("\n```{language}\n{text}\n```\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_one_line_and_no_two() {
        let rows = [["a\nb".to_owned(), code("c|d")], [String::new(), code("")]];
        assert_eq!(table(["A", "B"], rows), "| A | B |\n| --- | --- |\n| a b | `c\\|d` |\n|  |  |\n");
    }
}
