//! Schemas by name, as a type and its fields bring them along.

use std::collections::BTreeMap;

use utoipa::ToSchema;
use utoipa::openapi::{Object, Ref, RefOr, Schema};

pub(crate) type Schemas = BTreeMap<String, RefOr<Schema>>;

/// Returns the schema of a type and those of all types in its fields.
pub(crate) fn of<T: ToSchema>() -> Schemas {
    let mut schemas = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut schemas);
    schemas.into_iter().collect()
}

/// Returns the name of the component that a reference points to.
pub(crate) fn named(reference: &Ref) -> &str {
    reference.ref_location.rsplit('/').next().unwrap_or_default()
}

/// Returns whether a schema describes a plain value: neither a record nor a closed list of names.
pub(super) fn is_plain(object: &Object) -> bool {
    object.properties.is_empty() && object.additional_properties.is_none() && object.enum_values.is_none()
}
