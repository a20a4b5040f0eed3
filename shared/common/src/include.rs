//! What a response can include if the request asks for it.

use crate::closed_enum;

closed_enum! {
    /// What a response about an item includes on request (specification 4.6.3). Each is named like the field that the
    /// response then has.
    pub enum ItemInclude {
        /// The prices of each variant.
        Prices = "prices",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_names_are_pinned() {
        assert_eq!(ItemInclude::ALL.map(ItemInclude::as_str), ["prices"]);
    }
}
