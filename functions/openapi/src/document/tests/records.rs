//! The example of each response is exactly what its type serialises to.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use types::records::{
    PublicBalance, PublicItem, PublicItemDetail, PublicListing, PublicMarketplace, PublicMe, PublicOrder, VariantPrices,
};
use types::scope::{Scope, Tier};

use super::document;

fn example(path: &str) -> Value {
    document()["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["example"].clone()
}

fn survives<T: Serialize + DeserializeOwned>(example: &Value) {
    let record: T = serde_json::from_value(example.clone()).unwrap();
    assert_eq!(serde_json::to_value(record).unwrap(), *example);
}

#[test]
fn those_that_can_be_read_back() {
    survives::<PublicItem>(&example("/v1/public/catalog")["items"][0]);
    survives::<PublicItemDetail>(&example("/v1/public/items/{id}"));
    survives::<Vec<PublicMarketplace>>(&example("/v1/public/marketplaces"));
    survives::<PublicListing>(&example("/v1/public/listings")["items"][0]);
    survives::<PublicOrder>(&example("/v1/public/orders")["items"][0]);
    survives::<PublicBalance>(&example("/v1/public/wallet/balance"));
}

#[test]
fn those_that_are_only_written() {
    let told = example("/v1/public/me");
    let id = |name: &str| told[name].as_str().unwrap().parse().unwrap();
    let me = PublicMe {
        api_key_id: id("api_key_id"),
        user_id: told["user_id"].as_str().unwrap().parse().unwrap(),
        tier: Tier::Free,
        scopes: [Scope::CatalogRead, Scope::OrdersRead].into(),
        rate_limit_per_minute: Tier::Free.limit(),
    };
    assert_eq!(serde_json::to_value(me).unwrap(), told);

    let told = example("/v1/public/prices/{variant_id}");
    let usd = |name: &str| told[name].as_str().unwrap().parse().ok();
    let prices = VariantPrices {
        variant_id: told["variant_id"].as_str().unwrap().parse().unwrap(),
        sample_size: 42,
        source_keys: ["buff", "skinport"].map(|key| key.parse().unwrap()).into(),
        lowest_usd: usd("lowest_usd"),
        mean_usd: usd("mean_usd"),
        median_usd: usd("median_usd"),
        recommended_list_usd: usd("recommended_list_usd"),
    };
    assert_eq!(serde_json::to_value(prices).unwrap(), told);
}
