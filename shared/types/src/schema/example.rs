//! Examples of the records, for the API description.

use serde::Serialize;
use utoipa::ToSchema;

/// A record that the API description shows an example of.
pub trait Example: Serialize + ToSchema + Sized {
    /// Returns the example. The description also takes the example of each property from it.
    fn example() -> Self;
}
