//! Links: a value in the response of one operation is a parameter of another.

use utoipa::openapi::RefOr;
use utoipa::openapi::link::LinkBuilder;
use utoipa::openapi::path::Operation;

struct Step {
    from: &'static str,
    /// The place of the value in the body of the 200, as a JSON pointer.
    value: &'static str,
    to: &'static str,
    parameter: &'static str,
    name: &'static str,
    description: &'static str,
}

const STEPS: [Step; 3] = [
    Step {
        from: "searchCatalog",
        value: "/items/0/id",
        to: "getItem",
        parameter: "id",
        name: "item",
        description: "The first item of the page.",
    },
    Step {
        from: "getItem",
        value: "/id",
        to: "searchListings",
        parameter: "item_id",
        name: "listings",
        description: "The item's active listings.",
    },
    Step {
        from: "getItem",
        value: "/variants/0/variant_id",
        to: "getPrices",
        parameter: "variant_id",
        name: "prices",
        description: "The prices of the item's first variant.",
    },
];

/// Adds to an operation's 200 the links that lead on from it.
pub(super) fn add(mut operation: Operation) -> Operation {
    if let Some(RefOr::T(ok)) = operation.responses.responses.get_mut("200") {
        for step in STEPS.iter().filter(|step| operation.operation_id.as_deref() == Some(step.from)) {
            let link = LinkBuilder::new()
                .operation_id(step.to)
                .parameter(step.parameter, format!("$response.body#{}", step.value))
                .description(step.description)
                .build();
            ok.links.insert(step.name.to_owned(), RefOr::T(link));
        }
    }
    operation
}
