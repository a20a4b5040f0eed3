//! Places in the sequence of a user's orders.

use std::fmt;

use common::ids::OrderId;
use common::timestamp::Timestamp;

/// The place of an order, or the place before all orders of a time. Places sort like the positions under which orders
/// are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) at: Timestamp,
    /// `None` comes before every order of that time.
    pub(super) id: Option<OrderId>,
}

impl Place {
    /// Returns the place before every order.
    pub(super) fn first() -> Self {
        Self { at: Timestamp::from_millis(i64::MIN), id: None }
    }

    pub(super) fn from_order(created_at: Timestamp, id: OrderId) -> Self {
        Self { at: created_at, id: Some(id) }
    }

    /// Parses an order's position.
    pub(super) fn parse(position: &str) -> Option<Self> {
        let (at, id) = position.split_once('#')?;
        Some(Self { at: at.parse().ok()?, id: Some(id.parse().ok()?) })
    }

    /// Returns a place that is after `older`, and not after `newer`. It is a time alone if that is enough.
    pub(super) fn between(older: Self, newer: Self) -> Self {
        if older.at < newer.at { Self { at: newer.at, id: None } } else { newer }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.id {
            Some(id) => write!(f, "{}#{id}", self.at),
            None => self.at.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::order_position;
    use proptest::prelude::*;
    use uuid::Uuid;

    fn place() -> impl Strategy<Value = Place> {
        let id = prop::option::of(any::<u128>().prop_map(|id| OrderId::from(Uuid::from_u128(id))));
        (0i64..3, id).prop_map(|(millis, id)| Place { at: Timestamp::from_millis(millis), id })
    }

    proptest! {
        #[test]
        fn places_sort_like_the_positions_of_orders(a in place(), b in place()) {
            prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
            if let Some(id) = a.id {
                prop_assert_eq!(a.to_string(), order_position(a.at, id));
                prop_assert_eq!(Place::parse(&a.to_string()), Some(a));
            }
            let (older, newer) = (a.min(b), a.max(b));
            if older < newer {
                let between = Place::between(older, newer);
                prop_assert!(older < between && between <= newer);
            }
        }
    }
}
