//! The parameters of path and query (specification 4.2). If several are bad, the answer names all of them at once
//! (specification 7.3).

use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use super::error::{FieldCode, FieldError};
use common::ids::VariantId;
use common::money::{Usd, UsdError};
use common::names::ClosedEnum;

/// The parameters that an endpoint takes.
pub trait Input: Sized + Clone + Send + Sync {
    /// The names that may appear in the query.
    const QUERY: &'static [&'static str];

    /// Reads the parameters and reports problems to `params`. Returns `None` only if a required parameter is bad.
    fn read(params: &mut Params<'_>) -> Option<Self>;
}

/// An endpoint without parameters.
impl Input for () {
    const QUERY: &'static [&'static str] = &[];

    fn read(_: &mut Params<'_>) -> Option<Self> {
        Some(())
    }
}

/// The parameters of one request while they are read.
#[derive(Debug)]
pub struct Params<'a> {
    path: &'a [(String, String)],
    query: Vec<(String, Option<String>)>,
    problems: Vec<(usize, FieldError)>,
}

/// Why a value is refused, and the details to show.
pub type ParamProblem = (FieldCode, Vec<(&'static str, Value)>);

/// Longer names, in bytes, get no suggestion. Every known name is far shorter.
const MAX_SUGGESTED_NAME_BYTES: usize = 32;

const MALFORMED: ParamProblem = (FieldCode::Malformed, Vec::new());

/// Reads an endpoint's input from the decoded path parameters and the query as it was sent.
///
/// # Errors
/// One entry per bad parameter: those of the path first, then in the order of first appearance in the query.
pub fn parse<I: Input>(path: &[(String, String)], raw_query: &str) -> Result<I, Vec<FieldError>> {
    let mut params = Params { path, query: pairs(raw_query), problems: Vec::new() };
    params.refuse_unknown_and_repeated(I::QUERY);
    let input = I::read(&mut params);
    let mut problems = params.problems;
    problems.sort_by_key(|(place, _)| *place);
    match input {
        Some(input) if problems.is_empty() => Ok(input),
        _ => Err(problems.into_iter().map(|(_, problem)| problem).collect()),
    }
}

/// Returns the query's names and values, in order. A value that cannot be decoded is `None`.
fn pairs(raw: &str) -> Vec<(String, Option<String>)> {
    let parts = raw.split('&').filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            (decode(name).unwrap_or_else(|| name.to_owned()), decode(value))
        })
        .collect()
}

fn decode(text: &str) -> Option<String> {
    let escapes_are_whole = text
        .split('%')
        .skip(1)
        .all(|rest| rest.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)));
    if !escapes_are_whole {
        return None;
    }
    percent_decode_str(&text.replace('+', " ")).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

impl Params<'_> {
    /// Reads a required path parameter. Returns `None` if it is bad.
    pub fn path<T>(&mut self, name: &str, read: impl FnOnce(&str) -> Result<T, ParamProblem>) -> Option<T> {
        let value = self.path.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value);
        match read(value) {
            Ok(value) => Some(value),
            Err(refusal) => {
                self.problem(0, name, refusal);
                None
            }
        }
    }

    /// Reads an optional query parameter. Returns `None` if it is absent or bad.
    pub fn query<T>(&mut self, name: &str, read: impl FnOnce(&str) -> Result<T, ParamProblem>) -> Option<T> {
        let (place, value) = self.single(name)?;
        let outcome = value.as_deref().map_or(Err(MALFORMED), read);
        match outcome {
            Ok(value) => Some(value),
            Err(refusal) => {
                self.problem(place, name, refusal);
                None
            }
        }
    }

    /// Reports that the minimum `name` is above its maximum.
    pub fn inverted(&mut self, name: &str) {
        let place = self.place(name);
        self.problem(place, name, (FieldCode::Inverted, Vec::new()));
    }

    fn single(&self, name: &str) -> Option<(usize, Option<String>)> {
        let mut found = self.query.iter().enumerate().filter(|(_, (known, _))| known == name);
        let (at, (_, value)) = found.next()?;
        if found.next().is_some() { None } else { Some((at + 1, value.clone())) }
    }

    fn place(&self, name: &str) -> usize {
        self.query.iter().position(|(known, _)| known == name).map_or(0, |at| at + 1)
    }

    fn refuse_unknown_and_repeated(&mut self, allowed: &[&'static str]) {
        let names: Vec<String> = self.query.iter().map(|(name, _)| name.clone()).collect();
        let mut times = HashMap::<&str, usize>::new();
        for name in &names {
            *times.entry(name).or_default() += 1;
        }
        for (at, name) in names.iter().enumerate() {
            // Removed, so that a repeated name is reported once, where it appears first.
            match times.remove(name.as_str()) {
                Some(1) if !allowed.contains(&name.as_str()) => {
                    let details = suggestion(name, allowed).map(|near| ("suggestion", json!(near)));
                    self.problem(at + 1, name, (FieldCode::Unknown, details.into_iter().collect()));
                }
                Some(2..) => self.problem(at + 1, name, (FieldCode::Duplicate, Vec::new())),
                _ => {}
            }
        }
    }

    fn problem(&mut self, place: usize, field: &str, (code, details): ParamProblem) {
        let params = details.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        self.problems.push((place, FieldError { field: field.to_owned(), code, params }));
    }
}

/// Returns the allowed name that was probably meant. It is at most two edits away.
fn suggestion(name: &str, allowed: &[&'static str]) -> Option<&'static str> {
    if name.len() > MAX_SUGGESTED_NAME_BYTES {
        return None;
    }
    let name = name.to_ascii_lowercase();
    let near = allowed.iter().map(|known| (strsim::osa_distance(&name, known), *known));
    near.filter(|(edits, known)| *edits <= 2 && *edits < known.len()).min().map(|(_, known)| known)
}

/// Accepts any text except the empty one.
pub fn text(value: &str) -> Result<String, ParamProblem> {
    if value.is_empty() { Err(MALFORMED) } else { Ok(value.to_owned()) }
}

/// Accepts a hyphenated UUID in any case.
pub fn variant_id(value: &str) -> Result<VariantId, ParamProblem> {
    value.parse().map_err(|_| MALFORMED)
}

/// Accepts an amount in US dollars of at least 0.
pub fn usd(value: &str) -> Result<Usd, ParamProblem> {
    value.parse().map_err(|error| match error {
        UsdError::Malformed => MALFORMED,
        UsdError::Negative => (FieldCode::OutOfRange, vec![("min", json!(Usd::ZERO))]),
    })
}

/// Accepts an integer of at least `min` and, if there is a maximum, at most `max`.
pub fn integer(value: &str, min: i64, max: Option<i64>) -> Result<i64, ParamProblem> {
    let digits = value.strip_prefix('-').unwrap_or(value);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(MALFORMED);
    }
    let in_range = value.parse().ok().filter(|n| *n >= min && max.is_none_or(|max| *n <= max));
    in_range.ok_or_else(|| {
        let mut bounds = vec![("min", json!(min))];
        bounds.extend(max.map(|max| ("max", json!(max))));
        (FieldCode::OutOfRange, bounds)
    })
}

/// Accepts one of the names in a closed list.
pub fn one_of<T: ClosedEnum>(value: &str) -> Result<T, ParamProblem> {
    if value.is_empty() {
        return Err(MALFORMED);
    }
    value.parse().map_err(|_| {
        let names: Vec<_> = T::MEMBERS.iter().map(|member| member.name()).collect();
        (FieldCode::NotAllowed, vec![("allowed", json!(names))])
    })
}

#[cfg(test)]
#[path = "params_tests.rs"]
mod tests;
