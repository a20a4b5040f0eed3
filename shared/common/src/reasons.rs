//! Says in plain words why a JSON value was refused. The reader of JSON says it in words of Rust.

/// What the reader calls a kind of value, and what people call it.
const KINDS: [(&str, &str); 12] = [
    ("u64", "a whole number, 0 or more"),
    ("u32", "a whole number, 0 or more"),
    ("usize", "a whole number, 0 or more"),
    ("i64", "a whole number"),
    ("i32", "a whole number"),
    ("f64", "a number"),
    ("a sequence", "a list"),
    ("sequence", "a list"),
    ("map", "an object"),
    ("a map", "an object"),
    ("unit", "null"),
    ("a boolean", "true or false"),
];

/// Returns a reason of the reader of JSON in plain words.
pub fn plain(reason: &str) -> String {
    let mismatch = ["invalid type: ", "invalid value: "].iter().find_map(|start| reason.strip_prefix(start));
    if let Some((found, expected)) = mismatch.and_then(|rest| rest.rsplit_once(", expected ")) {
        return format!("must be {}, not {}", kind(expected), value(found));
    }
    if reason.starts_with("EOF while parsing") {
        return "must be JSON, and ends too early".to_owned();
    }
    if reason.starts_with("expected ") || reason.starts_with("key must be") || reason.starts_with("trailing ") {
        return "must be JSON".to_owned();
    }
    reason.to_owned()
}

fn kind(expected: &str) -> &str {
    let known = KINDS.iter().find(|(kind, _)| *kind == expected);
    // The name of a Rust type says nothing to anybody else.
    let is_type = expected.starts_with("struct ") || expected.starts_with("internally tagged");
    known.map_or(if is_type { "an object" } else { expected }, |(_, plain)| plain)
}

/// Returns what was found: a string in its quotes, or else what stands between backticks, or the kind of value.
fn value(found: &str) -> &str {
    if let Some(text) = found.strip_prefix("string ") {
        return text;
    }
    match found.split_once('`').and_then(|(_, rest)| rest.rsplit_once('`')) {
        Some((value, _)) => value,
        None => kind(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_reason_speaks_rust() {
        for (reason, expected) in [
            (r#"invalid type: string "1h", expected u64"#, r#"must be a whole number, 0 or more, not "1h""#),
            ("invalid value: integer `-1`, expected u64", "must be a whole number, 0 or more, not -1"),
            ("invalid type: map, expected a sequence", "must be a list, not an object"),
            ("invalid type: null, expected struct Item with 3 elements", "must be an object, not null"),
            ("invalid type: boolean `true`, expected a string", "must be a string, not true"),
            (
                r#"invalid type: string "a, expected b", expected a boolean"#,
                r#"must be true or false, not "a, expected b""#,
            ),
            ("EOF while parsing a string", "must be JSON, and ends too early"),
            ("expected value", "must be JSON"),
            ("trailing characters", "must be JSON"),
            ("unknown field `x`, expected `y`", "unknown field `x`, expected `y`"),
        ] {
            assert_eq!(plain(reason), expected);
        }
    }
}
