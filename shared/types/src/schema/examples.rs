//! The example of each record. A record with a new field does not compile until its example has the field.

use std::fmt::Debug;
use std::str::FromStr;

use uuid::{Uuid, uuid};

use super::example::Example;
use crate::ids::Id8;
use crate::records::{
    IncludedPrices, ListingKind, OrderSource, PublicBalance, PublicItem, PublicItemDetail, PublicListing,
    PublicMarketplace, PublicMe, PublicOrder, PublicOrderLine, PublicVariant, VariantPrices,
};
use crate::scope::{Scope, Tier};

const LISTING: Uuid = uuid!("0b0e7b1e-63f1-4b6a-8f0e-3f1a7d0c9b21");
/// A variant of the demo market, so a client can try the example on a local stack.
const VARIANT: Uuid = uuid!("302e3e41-4703-51e3-9cc2-e551bdcec11e");
const MARKET_HASH_NAME: &str = "AK-47 | Redline (Field-Tested)";

impl Example for PublicMe {
    fn example() -> Self {
        Self {
            api_key_id: uuid!("9a1c6f0e-2f7d-4c3b-9a55-5d0f3b1f7c10").into(),
            user_id: uuid!("3e0b1a8c-1f7a-4b58-8f0b-6c3d2a1e9f00").into(),
            tier: Tier::Free,
            scopes: [Scope::CatalogRead, Scope::OrdersRead].into(),
            rate_limit_per_minute: Tier::Free.limit(),
        }
    }
}

impl Example for PublicItem {
    fn example() -> Self {
        Self {
            id: parsed("ak-47-redline"),
            kind: parsed("skin"),
            name: Some(parsed("AK-47 | Redline")),
            slug: Some(parsed("ak-47-redline")),
            image: Some(parsed("https://img.example.com/ak-47-redline.png")),
        }
    }
}

impl Example for PublicItemDetail {
    fn example() -> Self {
        Self { item: PublicItem::example(), variants: vec![PublicVariant::example()] }
    }
}

impl Example for PublicVariant {
    fn example() -> Self {
        Self {
            variant_id: VARIANT.into(),
            wear: Some(parsed("Field-Tested")),
            stattrak: false,
            market_hash_name: Some(parsed(MARKET_HASH_NAME)),
            prices: Some(IncludedPrices(Some(VariantPrices::example()))),
        }
    }
}

impl Example for VariantPrices {
    fn example() -> Self {
        Self {
            variant_id: VARIANT.into(),
            sample_size: 42,
            source_keys: vec![parsed("buff"), parsed("skinport")],
            lowest_usd: Some(parsed("11.90")),
            mean_usd: Some(parsed("12.46")),
            median_usd: Some(parsed("12.40")),
            recommended_list_usd: Some(parsed("11.89")),
        }
    }
}

impl Example for PublicMarketplace {
    fn example() -> Self {
        Self {
            key: parsed("skinport"),
            name: parsed("Skinport"),
            link: parsed("https://skinport.example.com"),
            kind: parsed("p2p"),
            enabled: true,
        }
    }
}

impl Example for PublicListing {
    fn example() -> Self {
        Self {
            id: LISTING.into(),
            id8: Id8::from_bits(0xa1b2_c3d4),
            price_usd: parsed("12.50"),
            kind: ListingKind::Bot,
            is_auction: false,
            created_at: parsed("2026-11-20T10:00:00.000Z"),
            item_id: Some(parsed("ak-47-redline")),
            variant_id: Some(VARIANT.into()),
            market_hash_name: Some(parsed(MARKET_HASH_NAME)),
        }
    }
}

impl Example for PublicOrder {
    fn example() -> Self {
        Self {
            id: uuid!("7d2f4a90-58c1-4f0e-8a35-1c9be0a4d6f2").into(),
            status: parsed("delivered"),
            source: OrderSource::Checkout,
            total_usd: parsed("12.50"),
            created_at: parsed("2026-11-20T10:00:00.000Z"),
            delivered_at: Some(parsed("2026-11-20T10:04:31.250Z")),
            items: vec![PublicOrderLine::example()],
        }
    }
}

impl Example for PublicOrderLine {
    fn example() -> Self {
        Self { listing_id: LISTING.into(), price_usd: parsed("12.50"), item_id: Some(parsed("ak-47-redline")) }
    }
}

impl Example for PublicBalance {
    fn example() -> Self {
        Self {
            available_usd: parsed("15.00"),
            store_usd: parsed("10.00"),
            trade_usd: parsed("5.00"),
            withdrawable_usd: parsed("10.00"),
            held_usd: parsed("2.50"),
            escrow_usd: parsed("0.00"),
        }
    }
}

/// Reads a value of an example.
fn parsed<T: FromStr<Err: Debug>>(text: &str) -> T {
    text.parse().expect("every value of an example is valid")
}
