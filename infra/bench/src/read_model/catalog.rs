//! Questions to the catalog: search texts of several lengths that are found often, seldom and never.

use api::Handler;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use platform::aws::Missing;
use platform::service::Service;
use replica::{Catalog, CatalogQuery};
use types::paging::Paging;

use super::cold::ReplicaStream;
use super::subject::{QuestionKind, Subject};
use super::usual::{self, QueryPlan};
use crate::market::GeneratedMarket;

/// The name of each kind of question, a kind of item to search in, and the texts to search for. Nine texts take turns,
/// because the catalog keeps the counts of the latest eight searches.
const TEXTS: [(&str, &str, &[&str]); 9] = [
    ("everything", "skin", &[""]),
    ("1 character, often", "skin", &["a", "s", "r", "i", "e", "o", "n", "t", "l"]),
    ("1 character, never", "skin", &["#", "@", "$", "%", "~", "^", "=", "+", "["]),
    ("3 characters, often", "skin", &["red", "sil", "iro", "pap", "mid", "nig", "sta", "sol", "wil"]),
    ("3 characters, seldom", "music_kit", &["fjo", "umb", "kil", "uki", "ylo", "zed", "yes", "olf", "xyl"]),
    ("3 characters, never", "skin", &["zqx", "qqz", "xzj", "jqk", "a|b", "vvq", "wzx", "kzq", "zzv"]),
    (
        "10 characters, often",
        "sticker",
        &[
            "sticker | ",
            " | oslo 20",
            " | lisbon ",
            "toronto 20",
            "kitchen kn",
            "seoul 2025",
            "prague 202",
            "(holo) | t",
            "(glitter) ",
        ],
    ),
    (
        "10 characters, seldom",
        "music_kit",
        &[
            "fjordlys, ",
            "hanna qvis",
            "kilo watt,",
            "umber, cla",
            "xylo, bone",
            "yuki arai,",
            "zed minor,",
            "two left f",
            "low ceilin",
        ],
    ),
    (
        "10 characters, never",
        "skin",
        &[
            "midnight z",
            "kitchen zn",
            "paper plzn",
            "sticker ||",
            "zqxzqxzqxz",
            "turquoise#",
            "phantom zq",
            "electric |",
            "hourglassz",
        ],
    ),
];

/// The catalog as a subject of measurements.
pub(super) struct CatalogSubject;

impl Subject for CatalogSubject {
    const STREAM: ReplicaStream = ReplicaStream::Catalog;
    const PATH: &'static str = "/v1/public/catalog";
    type View = Catalog;
    type Query = CatalogQuery;

    fn kinds(_: &GeneratedMarket) -> Vec<QuestionKind<CatalogQuery>> {
        let queries = |texts: &[&str], kind: Option<&str>| {
            let query = |q: &&str| CatalogQuery { q: (*q).to_owned(), kind: kind.map(ToOwned::to_owned) };
            texts.iter().map(query).collect()
        };
        let kinds = TEXTS.into_iter().map(|(name, kind, texts)| {
            [
                QuestionKind { name: name.to_owned(), queries: queries(texts, None) },
                QuestionKind { name: format!("{name}, kind"), queries: queries(texts, Some(kind)) },
            ]
        });
        kinds.flatten().collect()
    }

    fn page(view: &Catalog, query: &CatalogQuery, paging: Paging) -> usize {
        std::hint::black_box(view.page(query, paging)).1
    }

    fn parameters(query: &CatalogQuery) -> String {
        let q = utf8_percent_encode(&query.q, NON_ALPHANUMERIC);
        query.kind.as_ref().map_or_else(|| format!("q={q}"), |kind| format!("q={q}&kind={kind}"))
    }

    fn plan(query: &CatalogQuery) -> QueryPlan {
        usual::plan_catalog(query)
    }

    fn handler(service: &Service<'_>) -> Result<Box<dyn Handler>, Missing> {
        Ok(Box::new(catalog::api(service)?))
    }
}
