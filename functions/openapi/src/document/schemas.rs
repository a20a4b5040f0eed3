//! The schemas, derived from the types that serialise the responses and from those of the events' data.

use api::error::ErrorEnvelope;
use types::money::Usd;
use types::schema::usd_as_read;
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

use super::body::ResponseBody;
use super::complete::complete;
use super::inline::inline;
use super::schema_set::{self, Schemas};
use super::webhooks;
use crate::events;

/// Returns every schema by name: of the bodies, of the errors, and of the events with their data.
pub(super) fn all<'a>(bodies: impl Iterator<Item = &'a ResponseBody> + Clone) -> Schemas {
    let mut schemas = schema_set::of::<ErrorEnvelope>();
    schemas.extend(bodies.clone().flat_map(|body| body.referred.clone()));
    inline(&mut schemas);
    for body in bodies {
        complete(&mut schemas, &mut body.schema.clone(), &body.example);
    }
    schemas.extend(of_events());
    schemas
}

/// An event's data is sent as the marketplace wrote it, so its amounts are described as they are read. It may gain fields,
/// so its description accepts those that the feed still refuses.
fn of_events() -> Schemas {
    let mut schemas: Schemas = events::all().into_iter().flat_map(|event| event.schemas).collect();
    schemas.insert(Usd::name().into_owned(), usd_as_read().into());
    inline(&mut schemas);
    for schema in schemas.values_mut() {
        if let RefOr::T(Schema::Object(object)) = schema {
            object.additional_properties = None;
        }
    }
    schemas.extend(webhooks::envelopes());
    schemas
}
