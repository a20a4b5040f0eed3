//! OpenAPI schemas of types whose form on the wire is not that of their fields, and examples of records.

mod example;
mod examples;
mod values;

pub use example::Example;
pub use values::usd_as_read;

use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

use crate::names::ClosedEnum;

/// Returns the schema of a closed list of names.
pub fn of_closed_enum<T: ClosedEnum>() -> Schema {
    let names = T::MEMBERS.iter().map(|member| member.name());
    let schema = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names));
    let lines = T::DESCRIPTION.lines().map(str::trim).collect::<Vec<_>>();
    schema.description(Some(lines.join("\n").trim().to_owned())).build().into()
}

/// Gives a closed list of names its schema, which other schemas refer to.
#[macro_export]
macro_rules! closed_enum_schema {
    ($($name:ty),+ $(,)?) => {$(
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                utoipa::openapi::RefOr::T($crate::schema::of_closed_enum::<Self>())
            }
        }

        impl utoipa::ToSchema for $name {}
    )+};
}

closed_enum_schema!(
    crate::scope::Scope,
    crate::scope::Tier,
    crate::records::ListingKind,
    crate::records::OrderSource,
    crate::event::CancelledBy,
    crate::event::WithdrawalStatus,
);
