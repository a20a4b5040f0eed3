//! Finds every field of a message that is not of its form. Serde stops at the first one, so each field is put by itself
//! into a message that is known to be good, and that message is read. A field that is repeated is not found here.

use serde_json::{Map, Value};

use super::rejection::{BadField, Rejection};

/// No more bad fields than this are named.
const MAX_NAMED: usize = 32;
/// No more entries of a list are looked at than this. No list may have more.
const MAX_ENTRIES: usize = 1_000;

/// Returns the fields of `message` for which `check` refuses the good message.
pub(super) fn bad_fields(
    message: &Value,
    good: &Value,
    check: &dyn Fn(&str) -> Result<(), Rejection>,
) -> Vec<BadField> {
    let mut search = Search { check, found: Vec::new() };
    search.visit("", good, message, &|whole| whole);
    search.found
}

struct Search<'c> {
    check: &'c dyn Fn(&str) -> Result<(), Rejection>,
    found: Vec<BadField>,
}

impl Search<'_> {
    /// Looks at the part of a message at `path`. `good` is the same part of the good message, and `whole` makes a whole
    /// message with another part in its place.
    fn visit(&mut self, path: &str, good: &Value, part: &Value, whole: &dyn Fn(Value) -> Value) {
        match (good, part) {
            (Value::Object(good), Value::Object(fields)) => self.visit_fields(path, good, fields, whole),
            (Value::Array(good), Value::Array(entries)) => {
                let Some(good) = good.first() else { return };
                let with_entry = |entry| whole(Value::Array(vec![entry]));
                for (at, entry) in entries.iter().enumerate().take(MAX_ENTRIES) {
                    self.visit(&format!("{path}[{at}]"), good, entry, &with_entry);
                }
            }
            _ => self.check(path, &whole(part.clone())),
        }
    }

    fn visit_fields(
        &mut self,
        path: &str,
        good: &Map<String, Value>,
        fields: &Map<String, Value>,
        whole: &dyn Fn(Value) -> Value,
    ) {
        let path_to = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        for name in good.keys().filter(|name| !fields.contains_key(*name)) {
            let mut others = good.clone();
            others.remove(name);
            self.check(&path_to(name), &whole(Value::Object(others)));
        }
        for (name, value) in fields {
            let with_field = |value| {
                let mut changed = good.clone();
                changed.insert(name.clone(), value);
                whole(Value::Object(changed))
            };
            match good.get(name) {
                Some(good) => self.visit(&path_to(name), good, value, &with_field),
                None => self.check(&path_to(name), &with_field(value.clone())),
            }
        }
    }

    fn check(&mut self, path: &str, message: &Value) {
        if self.found.len() == MAX_NAMED {
            return;
        }
        if let Err(Rejection { reason, .. }) = (self.check)(&message.to_string()) {
            self.found.push(BadField { field: path.to_owned(), reason });
        }
    }
}
