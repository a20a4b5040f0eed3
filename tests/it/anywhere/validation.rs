//! The grammar of parameters, and errors that name every bad one (specification 4.2 and 7.3).

use common::scope::Tier;
use serde_json::{Value, json};
use tests::{HttpReply, Target, item};

async fn get(target: &Target, path: &str) -> HttpReply {
    // Each request has its own key, because there are more cases than tokens.
    target.client.get(&target.full_key().await, path).await
}

fn invalid(fields: &Value) -> Value {
    json!({"error": {"code": "request.invalid", "params": {}, "fields": fields}})
}

const WHOLE: &str = "a whole number, such as 2";
const UUID: &str = "a UUID with hyphens, such as 302e3e41-4703-51e3-9cc2-e551bdcec11e";

fn entry(field: &str, code: &str, params: &Value) -> Value {
    json!({"field": field, "code": code, "params": params})
}

#[tokio::test(flavor = "multi_thread")]
async fn one_bad_value_is_named_with_its_rule() {
    let target = Target::new().await;
    let none = json!({});
    let expected = |form: &str| json!({"expected": form});
    let (whole, decimal) = (expected(WHOLE), expected("a decimal number with at most two decimals, such as 12.50"));
    let page = json!({"min": 1, "max": i64::MAX});
    let size = json!({"min": 1, "max": 100});
    let money = json!({"min": "0.00", "max": "999999999999.99"});
    let sorts = json!({"allowed": ["newest", "price_asc", "price_desc"]});
    let mut cases = Vec::new();
    for list in ["catalog", "listings", "orders"] {
        for bad in ["", "1.0", "+1", "-", "%D9%A1"] {
            cases.push((format!("{list}?page={bad}"), entry("page", "malformed", &whole)));
            cases.push((format!("{list}?page_size={bad}"), entry("page_size", "malformed", &whole)));
        }
        for bad in ["0", "-9223372036854775809", "9223372036854775808"] {
            cases.push((format!("{list}?page={bad}"), entry("page", "out_of_range", &page)));
        }
        for bad in ["0", "101", "99999999999999999999"] {
            cases.push((format!("{list}?page_size={bad}"), entry("page_size", "out_of_range", &size)));
        }
    }
    for field in ["min_price", "max_price"] {
        for bad in ["", "1e3", "NaN", "1.234", "%2B1", ".5", "1.", "1,50", "$5", "0000000000001"] {
            cases.push((format!("listings?{field}={bad}"), entry(field, "malformed", &decimal)));
        }
        for bad in ["-0.01", "1234567890123", "9999999999999.99"] {
            cases.push((format!("listings?{field}={bad}"), entry(field, "out_of_range", &money)));
        }
    }
    for bad in ["", "x", "6f9619ff8b86d011b42d00c04fc964ff", "%7B6f9619ff-8b86-d011-b42d-00c04fc964ff%7D"] {
        cases.push((format!("listings?variant_id={bad}"), entry("variant_id", "malformed", &expected(UUID))));
    }
    cases.push(("prices/not-a-uuid".to_owned(), entry("variant_id", "malformed", &expected(UUID))));
    cases.push(("listings?sort=oldest".to_owned(), entry("sort", "not_allowed", &sorts)));
    for bad in ["x", "Prices", "prices,prices"] {
        let allowed = json!({"allowed": ["prices"]});
        cases.push((format!("items/a?include={bad}"), entry("include", "not_allowed", &allowed)));
    }
    for (empty, form) in [
        ("items/a?include=", "one of: prices"),
        ("listings?sort=", "one of: newest, price_asc, price_desc"),
        ("listings?item_id=", "at least one character"),
        ("catalog?kind=", "at least one character"),
        ("catalog?kind", "at least one character"),
    ] {
        let field = empty.split(['?', '=']).nth(1).unwrap();
        cases.push((empty.to_owned(), entry(field, "malformed", &expected(form))));
    }
    for bad in ["%ff", "%", "%4", "%zz"] {
        cases.push((format!("catalog?q={bad}"), entry("q", "malformed", &expected("text in UTF-8, escaped as %XX"))));
    }
    cases.push(("listings?min_price=5&max_price=4.99".to_owned(), entry("min_price", "inverted", &none)));
    cases.push(("catalog?pagesize=5".to_owned(), entry("pagesize", "unknown", &json!({"suggestion": "page_size"}))));
    for (path, sent, meant) in [
        ("catalog", "limit", "page_size"),
        ("catalog", "per_page", "page_size"),
        ("orders", "size", "page_size"),
        ("listings", "offset", "page"),
        ("listings", "cursor", "page"),
        ("listings/changes?after=0", "cursor", "after"),
    ] {
        let and = if path.contains('?') { '&' } else { '?' };
        cases.push((format!("{path}{and}{sent}=1"), entry(sent, "unknown", &json!({"suggestion": meant}))));
    }
    cases.push(("catalog?sort=newest".to_owned(), entry("sort", "unknown", &none)));
    cases.push(("catalog?page=1&page=1".to_owned(), entry("page", "duplicate", &none)));
    for (path, unknown) in
        [("me?x=1", "x"), ("marketplaces?page=1", "page"), ("wallet/balance?q=", "q"), ("items/a?b", "b")]
    {
        cases.push((path.to_owned(), entry(unknown, "unknown", &none)));
    }
    for (path, expected) in cases {
        let reply = get(&target, &format!("/v1/public/{path}")).await;
        assert_eq!(reply.status, 400, "{path}");
        assert_eq!(reply.json(), invalid(&json!([expected])), "{path}");
        target.assert_rate(&reply, Tier::Free.limit(), Tier::Free.limit() - 1);
        assert_eq!(reply.header("cache-control"), "no-store");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_bad_values_are_all_named_in_order() {
    let target = Target::new().await;
    let path =
        "/v1/public/listings?sort=up&limit=3&page_size=0&min_price=7&variant_id=z&max_price=6&page=1&page=x&offset=0";
    let reply = get(&target, path).await;
    assert_eq!(reply.status, 400);
    let expected = json!([
        entry("sort", "not_allowed", &json!({"allowed": ["newest", "price_asc", "price_desc"]})),
        entry("limit", "unknown", &json!({"suggestion": "page_size"})),
        entry("page_size", "out_of_range", &json!({"min": 1, "max": 100})),
        entry("min_price", "inverted", &json!({})),
        entry("variant_id", "malformed", &json!({"expected": UUID})),
        entry("page", "duplicate", &json!({})),
        entry("offset", "unknown", &json!({"suggestion": "page"})),
    ]);
    assert_eq!(reply.json(), invalid(&expected));
    // The path comes before the query.
    let reply = get(&target, "/v1/public/prices/x?y=1").await;
    let expected =
        json!([entry("variant_id", "malformed", &json!({"expected": UUID})), entry("y", "unknown", &json!({}))]);
    assert_eq!((reply.status, reply.json()), (400, invalid(&expected)));
    let many: Vec<_> = (0..40).map(|n| format!("x{n}=1")).collect();
    let reply = get(&target, &format!("/v1/public/me?{}", many.join("&"))).await;
    let expected: Vec<Value> = (0..32).map(|n| entry(&format!("x{n}"), "unknown", &json!({}))).collect();
    assert_eq!((reply.status, reply.json()), (400, invalid(&json!(expected))));
}

#[tokio::test(flavor = "multi_thread")]
async fn values_at_the_edge_of_the_grammar_are_accepted() {
    let target = Target::new().await;
    for path in [
        "catalog?kind=no_such_kind&page=9223372036854775807&page_size=100",
        "listings?page=0001&page_size=1&min_price=999999999999.99&max_price=999999999999.99",
        "orders?page=9223372036854775807",
        "listings?variant_id=6F9619FF-8B86-D011-B42D-00C04FC964FF&min_price=0&max_price=0.0",
        "catalog?q=&kind=no_such_kind",
        "catalog?q&kind=no_such_kind",
        "catalog?kind=no_such_kind&",
        "listings?item_id=no%20such%20item",
    ] {
        let reply = get(&target, &format!("/v1/public/{path}")).await;
        assert_eq!(reply.status, 200, "{path}: {:?}", reply.json());
        assert_eq!((&reply.json()["items"], &reply.json()["total"]), (&json!([]), &json!(0)), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_query_or_search_matches_all() {
    let target = Target::new().await;
    target.feed(&[item(&target.word(), "skin", Some("A"), 1)]).await;
    for path in ["catalog", "catalog?", "catalog?q", "catalog?q="] {
        let reply = get(&target, &format!("/v1/public/{path}")).await;
        assert_eq!((reply.status, &reply.json()["page"]), (200, &json!(1)), "{path}");
        let total = reply.json()["total"].as_u64().unwrap();
        assert!(if target.is_shared() { total > 0 } else { total == 1 }, "{path}: {total}");
    }
}
