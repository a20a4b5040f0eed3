//! The body of a 200: its schema, and an example of it.

use serde_json::{Value, json};
use types::paging::{Paged, Paging};
use types::schema::Example;
use utoipa::openapi::{ArrayBuilder, Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::schema_set::{self, Schemas};

pub(super) struct ResponseBody {
    pub(super) schema: RefOr<Schema>,
    pub(super) example: Value,
    /// The schemas that the body's schema refers to.
    pub(super) referred: Schemas,
}

impl ResponseBody {
    /// One record.
    pub(super) fn record<R: Example>() -> Self {
        Self {
            schema: Ref::from_schema_name(R::name()).into(),
            example: json!(R::example()),
            referred: schema_set::of::<R>(),
        }
    }

    /// A page of records.
    pub(super) fn page<R: Example>() -> Self {
        let first = Paging { page: 1, page_size: Paging::DEFAULT_SIZE };
        let name = format!("{}{}", Paged::<R>::name(), R::name());
        let mut referred = schema_set::of::<R>();
        referred.insert(name.clone(), Paged::<R>::schema());
        Self {
            schema: Ref::from_schema_name(name).into(),
            example: json!(first.envelope(vec![R::example()], 1)),
            referred,
        }
    }

    /// All records, without pages.
    pub(super) fn list<R: Example>() -> Self {
        let Self { schema, example, referred } = Self::record::<R>();
        Self { schema: ArrayBuilder::new().items(schema).into(), example: json!([example]), referred }
    }

    /// A body that is no record.
    pub(super) fn other(schema: impl Into<RefOr<Schema>>, example: Value) -> Self {
        Self { schema: schema.into(), example, referred: Schemas::new() }
    }
}
