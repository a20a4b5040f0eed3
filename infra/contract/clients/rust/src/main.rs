//! Uses the client that progenitor generates.

mod receiver;

use std::collections::BTreeSet;
use std::env;
use std::error::Error as AnyError;

use client::types::{ErrorEnvelope, FieldCode, ListingSoldEvent, SearchListingsSort};
use client::{Client, Error};
use reqwest::header::{AUTHORIZATION, HeaderMap, RETRY_AFTER};

const PAGE_SIZE: u64 = 100;

type Result<T = ()> = std::result::Result<T, Box<dyn AnyError>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result {
    let key = format!("Bearer {}", env::var("API_KEY")?);
    let headers = HeaderMap::from_iter([(AUTHORIZATION, key.parse()?)]);
    let http = reqwest::Client::builder().default_headers(headers).build()?;
    let client = Client::new_with_client(&env::var("API_BASE_URL")?, http);
    call_every_endpoint(&client).await?;
    walk(&client).await?;
    send_a_bad_parameter(&client).await;
    use_up_a_budget(&client).await?;
    let body = receiver::receive(env::var("WEBHOOK_PORT")?.parse()?, &env::var("WEBHOOK_SECRET")?)?;
    let event: ListingSoldEvent = serde_json::from_slice(&body)?;
    println!("sold: {} for {}", event.data.listing_id, *event.data.price_usd);
    Ok(())
}

async fn call_every_endpoint(client: &Client) -> Result {
    assert!(!client.get_me().send().await?.scopes.is_empty());
    let listings = client.search_listings().sort(SearchListingsSort::PriceAsc).send().await?;
    let listing = listings.items.first().ok_or("no listings")?;
    let item = listing.item_id.as_ref().ok_or("a listing without an item")?;
    let variant = listing.variant_id.ok_or("a listing without a variant")?;
    let item = client.get_item().id(item.to_string()).send().await?;
    assert!(item.variants.iter().any(|of_item| of_item.variant_id == variant));
    assert_eq!(client.get_prices().variant_id(variant).send().await?.variant_id, variant);
    assert!(!client.list_marketplaces().send().await?.is_empty());
    assert!(!client.list_orders().send().await?.items.is_empty());
    assert!(!client.get_balance().send().await?.available_usd.is_empty());
    assert!(!client.get_description().send().await?.is_empty());
    Ok(())
}

async fn walk(client: &Client) -> Result {
    let mut ids = BTreeSet::new();
    for page in 1_u64.. {
        let answer = client.search_catalog().page(page).page_size(PAGE_SIZE).send().await?.into_inner();
        ids.extend(answer.items.into_iter().map(|item| item.id.to_string()));
        if page * PAGE_SIZE >= u64::try_from(answer.total)? {
            assert_eq!(ids.len(), usize::try_from(answer.total)?);
            println!("walked {} items", ids.len());
            break;
        }
    }
    Ok(())
}

async fn send_a_bad_parameter(client: &Client) {
    let answer = client.search_catalog().page_size(PAGE_SIZE + 1).send().await;
    let Err(Error::ErrorResponse(refused)) = answer else { panic!("not refused") };
    let field = &refused.error.fields[0];
    assert_eq!((field.field.as_str(), field.code), ("page_size", FieldCode::OutOfRange));
}

async fn use_up_a_budget(client: &Client) -> Result {
    loop {
        match client.get_me().send().await {
            Ok(_) => {}
            Err(Error::ErrorResponse(refused)) => {
                assert_eq!(refused.status().as_u16(), 429);
                let ErrorEnvelope { error } = &*refused;
                assert_eq!(error.code, "rate_limits.exceeded");
                let wait: u32 = refused.headers()[RETRY_AFTER].to_str()?.parse()?;
                println!("must wait {wait} seconds");
                return Ok(());
            }
            Err(other) => return Err(other.into()),
        }
    }
}
