//! The parameters of path and query (specification 4.2), among them those of a page (specification 4.3). If several are
//! bad, the answer names all of them at once (specification 7.3).

use std::collections::HashMap;

use common::ids::VariantId;
use common::money::{Usd, UsdError};
use common::names::ClosedEnum;
use common::paging::Paging;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::error::{FieldCode, FieldError};

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

/// The most problems that an answer names. They are longer than what the client sent.
const MAX_PROBLEMS: usize = 32;

/// What other APIs call a parameter, and its name here.
const SYNONYMS: [(&str, &str); 23] = [
    ("count", PAGE_SIZE),
    ("cursor", PAGE),
    ("cursor", "after"),
    ("expand", "include"),
    ("limit", PAGE_SIZE),
    ("name", "q"),
    ("offset", PAGE),
    ("order", "sort"),
    ("order_by", "sort"),
    ("page_number", PAGE),
    ("per_page", PAGE_SIZE),
    ("position", "after"),
    ("price_max", "max_price"),
    ("price_min", "min_price"),
    ("query", "q"),
    ("search", "q"),
    ("search_term", "q"),
    ("since", "after"),
    ("size", PAGE_SIZE),
    ("skip", PAGE),
    ("text", "q"),
    ("title", "q"),
    ("type", "kind"),
];

fn malformed(expected: &str) -> ParamProblem {
    (FieldCode::Malformed, vec![("expected", json!(expected))])
}

/// Reads an endpoint's input from the decoded path parameters and the query as it was sent.
///
/// # Errors
/// One entry per bad parameter, at most 32: those of the path first, then in the order of first appearance in the query.
pub fn parse<I: Input>(path: &[(String, String)], raw_query: &str) -> Result<I, Vec<FieldError>> {
    let mut params = Params { path, query: pairs(raw_query), problems: Vec::new() };
    params.refuse_unknown_and_repeated(I::QUERY);
    let input = I::read(&mut params);
    let mut problems = params.problems;
    problems.sort_by_key(|(place, _)| *place);
    match input {
        Some(input) if problems.is_empty() => Ok(input),
        _ => Err(problems.into_iter().map(|(_, problem)| problem).take(MAX_PROBLEMS).collect()),
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
        let outcome = value.as_deref().map_or_else(|| Err(malformed("text in UTF-8, escaped as %XX")), read);
        match outcome {
            Ok(value) => Some(value),
            Err(refusal) => {
                self.problem(place, name, refusal);
                None
            }
        }
    }

    /// Reads a required query parameter. Returns `None` if it is absent or bad.
    pub fn required<T>(&mut self, name: &str, read: fn(&str) -> Result<T, ParamProblem>) -> Option<T> {
        if self.place(name) == 0 {
            // What an empty value lacks is what is expected.
            let details = read("").err().map(|(_, details)| details);
            self.problem(0, name, (FieldCode::Required, details.unwrap_or_default()));
        }
        self.query(name, read)
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

/// Returns the allowed name that was probably meant: what others call it, or at most two edits away.
/// Of a short name, fewer edits make another word.
fn suggestion(name: &str, allowed: &[&'static str]) -> Option<&'static str> {
    if name.len() > MAX_SUGGESTED_NAME_BYTES {
        return None;
    }
    let name = name.to_ascii_lowercase();
    let mut synonyms = SYNONYMS.into_iter().filter(|(synonym, _)| *synonym == name);
    if let Some((_, meant)) = synonyms.find(|(_, meant)| allowed.contains(meant)) {
        return Some(meant);
    }
    let near = allowed.iter().map(|known| (strsim::osa_distance(&name, known), *known));
    near.filter(|(edits, known)| *edits <= 2 && edits * 3 <= known.len()).min().map(|(_, known)| known)
}

/// Accepts any text except the empty one.
pub fn text(value: &str) -> Result<String, ParamProblem> {
    if value.is_empty() { Err(malformed("at least one character")) } else { Ok(value.to_owned()) }
}

/// Accepts a hyphenated UUID in any case.
pub fn variant_id(value: &str) -> Result<VariantId, ParamProblem> {
    value.parse().map_err(|_| malformed("a UUID with hyphens, such as 302e3e41-4703-51e3-9cc2-e551bdcec11e"))
}

/// Accepts an amount in US dollars.
pub fn usd(value: &str) -> Result<Usd, ParamProblem> {
    value.parse().map_err(|error| match error {
        UsdError::Malformed => malformed("a decimal number with at most two decimals, such as 12.50"),
        UsdError::Negative | UsdError::TooLarge => {
            (FieldCode::OutOfRange, vec![("min", json!(Usd::ZERO)), ("max", json!(Usd::MAX))])
        }
    })
}

/// Accepts an integer from `min` to `max`.
pub fn integer(value: &str, min: i64, max: i64) -> Result<i64, ParamProblem> {
    let digits = value.strip_prefix('-').unwrap_or(value);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(malformed("a whole number, such as 2"));
    }
    let in_range = value.parse().ok().filter(|n| (min..=max).contains(n));
    in_range.ok_or_else(|| (FieldCode::OutOfRange, vec![("min", json!(min)), ("max", json!(max))]))
}

/// Accepts a position in the log of changes. One that no log reaches is as good as the last.
pub fn position(value: &str) -> Result<u64, ParamProblem> {
    if value.is_empty() || !value.bytes().all(|b| b.is_ascii_digit()) {
        return Err(malformed("a position from X-Log-Position or from the answer before, such as 4711"));
    }
    Ok(value.parse().unwrap_or(u64::MAX))
}

/// Accepts one of the names in a closed list.
pub fn one_of<T: ClosedEnum>(value: &str) -> Result<T, ParamProblem> {
    let names = || T::MEMBERS.iter().map(|member| member.name()).collect::<Vec<_>>();
    if value.is_empty() {
        return Err(malformed(&format!("one of: {}", names().join(", "))));
    }
    value.parse().map_err(|_| (FieldCode::NotAllowed, vec![("allowed", json!(names()))]))
}

/// The query parameter for the page number.
pub const PAGE: &str = "page";
/// The query parameter for the number of records per page.
pub const PAGE_SIZE: &str = "page_size";

/// Reads `page` and `page_size`, each with its default if it is absent.
pub fn paging(params: &mut Params<'_>) -> Paging {
    let page = params.query(PAGE, |v| integer(v, 1, i64::MAX)).unwrap_or(1);
    let page_size = params.query(PAGE_SIZE, |v| integer(v, 1, Paging::MAX_SIZE)).unwrap_or(Paging::DEFAULT_SIZE);
    Paging { page, page_size }
}

/// The input of an endpoint whose only parameters are those of a page.
impl Input for Paging {
    const QUERY: &'static [&'static str] = &[PAGE, PAGE_SIZE];

    fn read(params: &mut Params<'_>) -> Option<Self> {
        Some(paging(params))
    }
}

#[cfg(test)]
mod tests {
    use common::paging::Sort;
    use proptest::prelude::*;

    use super::*;
    use crate::error::FieldCode::Duplicate;

    #[derive(Clone, Debug, PartialEq)]
    struct Everything {
        id: Option<VariantId>,
        q: Option<String>,
        min: Option<Usd>,
        sort: Option<Sort>,
        paging: Paging,
    }

    impl Input for Everything {
        const QUERY: &'static [&'static str] = &["q", "min_price", "sort", "page", "page_size"];

        fn read(params: &mut Params<'_>) -> Option<Self> {
            let id = params.path("id", variant_id);
            let q = params.query("q", |v| Ok(v.to_owned()));
            let min = params.query("min_price", usd);
            let sort = params.query("sort", one_of);
            let paging = crate::paging(params);
            Some(Self { id, q, min, sort, paging })
        }
    }

    fn bad(id: &str, query: &str) -> Vec<(String, FieldCode)> {
        let path = [("id".to_owned(), id.to_owned())];
        let problems = parse::<Everything>(&path, query).err().unwrap_or_default();
        problems.into_iter().map(|p| (p.field, p.code)).collect()
    }

    const ID: &str = "6f9619ff-8b86-d011-b42d-00c04fc964ff";

    fn named(expected: &[(&str, FieldCode)]) -> Vec<(String, FieldCode)> {
        expected.iter().map(|(field, code)| ((*field).to_owned(), *code)).collect()
    }

    #[test]
    fn a_repeated_name_is_one_entry_and_no_other() {
        assert_eq!(bad(ID, "page=x&q=a&page=1"), named(&[("page", Duplicate)]));
        assert_eq!(bad(ID, "zzz=1&zzz=2"), named(&[("zzz", Duplicate)]));
        assert_eq!(bad(ID, "p%61ge=1&page=1"), named(&[("page", Duplicate)]));
    }

    proptest! {
        #[test]
        fn no_query_panics_and_every_problem_names_something_sent(query in "[a-z_%=&+.0-9é-]{0,60}") {
            let names: Vec<String> = pairs(&query).into_iter().map(|(name, _)| name).collect();
            for (field, _) in bad(ID, &query) {
                prop_assert!(names.contains(&field));
            }
        }

        #[test]
        fn any_text_survives_encoding(text in "\\PC{0,30}") {
            let encoded = percent_encoding::utf8_percent_encode(&text, percent_encoding::NON_ALPHANUMERIC).to_string();
            let read = parse::<Everything>(&[("id".to_owned(), ID.to_owned())], &format!("q={encoded}")).unwrap();
            prop_assert_eq!(read.q.unwrap(), text);
        }

        #[test]
        fn integers_agree_with_arithmetic(n in any::<i128>(), max in 1i64..1000) {
            let read = integer(&n.to_string(), 1, max);
            prop_assert_eq!(read.is_ok(), n >= 1 && n <= i128::from(max));
        }
    }

    fn read(query: &str) -> Option<Paging> {
        parse::<Paging>(&[], query).ok()
    }

    #[test]
    fn the_farthest_page_overflows_nothing() {
        let far = read("page=9223372036854775807&page_size=100").unwrap();
        assert_eq!(far.skip(), usize::try_from(i64::MAX).unwrap());
        assert_eq!(read("page=9223372036854775808"), None);
    }
}
