//! Walks the catalog, and then keeps the active listings up to date: `walk ROUNDS SECONDS`
//!
//! `BASE_URL` and `API_KEY` are in the environment. Prints a line of JSON for the catalog, for one item with its prices,
//! and for each round.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::error::Error;
use std::time::{Duration, Instant};

use reqwest::header::{ETAG, HeaderMap, IF_NONE_MATCH, RETRY_AFTER};
use serde_json::{Value, json};
use tokio::time::sleep;

/// Asks the API within the budget of one scope.
struct Client {
    http: reqwest::Client,
    base_url: String,
    api_key: String,
    /// The tag and the body of each path.
    copies: HashMap<String, (String, Value)>,
    /// When the budget has a request left.
    free_at: Instant,
}

impl Client {
    /// Returns the body of a path, and the position in the log of the state that it shows.
    async fn get(&mut self, path: &str) -> Result<(Value, Option<String>), Box<dyn Error>> {
        for failures in 0..10 {
            sleep(self.free_at.saturating_duration_since(Instant::now())).await;
            // Without an answer, the status is 0.
            let (status, headers, body) = self.send(path).await.unwrap_or_default();
            if let Some(wait) = budget_returns(&headers) {
                // A random time more, so that clients do not come together when the minute begins.
                self.free_at = Instant::now() + wait + Duration::from_secs_f64(fastrand::f64());
            }
            if status == 200 {
                let tag = text(&headers, ETAG.as_str()).unwrap_or_default();
                self.copies.insert(path.to_owned(), (tag.to_owned(), serde_json::from_str(&body)?));
            }
            if let (200 | 304, Some((_, copy))) = (status, self.copies.get(path)) {
                return Ok((copy.clone(), text(&headers, "x-log-position").map(str::to_owned)));
            }
            if (400..500).contains(&status) && status != 429 {
                return Err(format!("{path}: {status} {body}").into());
            }
            // No answer, 429 or 5xx: as long as the API says, and a random time more.
            let told: u64 = text(&headers, RETRY_AFTER.as_str()).and_then(|told| told.parse().ok()).unwrap_or(0);
            let more = fastrand::f64() * (0.25 * f64::powi(2.0, failures)).min(30.0);
            sleep(Duration::from_secs(told) + Duration::from_secs_f64(more)).await;
        }
        Err(format!("{path}: no answer").into())
    }

    async fn send(&self, path: &str) -> Result<(u16, HeaderMap, String), reqwest::Error> {
        let mut request = self.http.get(format!("{}{path}", self.base_url)).bearer_auth(&self.api_key);
        if let Some((tag, _)) = self.copies.get(path) {
            request = request.header(IF_NONE_MATCH, tag);
        }
        let response = request.timeout(Duration::from_secs(10)).send().await?;
        Ok((response.status().as_u16(), response.headers().clone(), response.text().await?))
    }
}

/// Returns how long to wait if no request is left: `r=0`, and the seconds in `t`.
fn budget_returns(headers: &HeaderMap) -> Option<Duration> {
    let (_, left) = text(headers, "ratelimit")?.split_once(";r=")?;
    let (left, seconds) = left.split_once(";t=")?;
    (left == "0").then_some(Duration::from_secs(seconds.parse().ok()?))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The records of a list by their ids.
type Records = BTreeMap<String, Value>;

/// Returns all records of a list, and the position of the one state that they show. If the state changes during the
/// walk, it begins again. The third try goes on to the end, and has no position then.
async fn walk(client: &mut Client, path: &str, size: u64) -> Result<(Records, Option<String>), Box<dyn Error>> {
    let mut records = Records::new();
    for is_last in [false, false, true] {
        records.clear();
        let (mut positions, mut page, mut total) = (HashSet::new(), 0, 1);
        while page * size < total && (positions.len() < 2 || is_last) {
            page += 1;
            let (body, position) = client.get(&format!("{path}?page={page}&page_size={size}")).await?;
            for record in body["items"].as_array().ok_or("no items")? {
                records.insert(record["id"].as_str().ok_or("no id")?.to_owned(), record.clone());
            }
            positions.insert(position);
            total = body["total"].as_u64().ok_or("no total")?;
        }
        if positions.len() == 1 {
            return Ok((records, positions.into_iter().next().flatten()));
        }
    }
    Ok((records, None))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let number = |at| std::env::args().nth(at).ok_or("walk ROUNDS SECONDS");
    let (rounds, seconds): (u64, f64) = (number(1)?.parse()?, number(2)?.parse()?);
    let size = std::env::var("PAGE_SIZE").map_or(Ok(100), |size| size.parse())?;
    let [mut catalog, mut listings] = [client()?, client()?];
    let (items, position) = walk(&mut catalog, "/v1/public/catalog", size).await?;
    println!("{}", json!({"items": items.keys().collect::<Vec<_>>(), "one_state": position.is_some()}));
    if let Some(first) = items.keys().next() {
        // All variants with their prices take one request.
        let (item, _) = catalog.get(&format!("/v1/public/items/{first}?include=prices")).await?;
        let variants = item["variants"].as_array().ok_or("no variants")?;
        println!("{}", json!({"priced": variants.iter().filter(|one| !one["prices"].is_null()).count()}));
    }
    let (mut found, mut known) = walk(&mut listings, LISTINGS, size).await?;
    for round in 0..rounds {
        if round > 0 {
            sleep(Duration::from_secs_f64(seconds)).await;
            let (_, position) = listings.get(&format!("{LISTINGS}?page=1&page_size={size}")).await?;
            // If nothing has changed, a round takes one request.
            if position != known {
                (found, known) = walk(&mut listings, LISTINGS, size).await?;
            }
        }
        println!("{}", json!({"listings": found.keys().collect::<Vec<_>>()}));
    }
    Ok(())
}

const LISTINGS: &str = "/v1/public/listings";

#[expect(clippy::disallowed_methods, reason = "unlike the tests, it goes through the proxy of its environment")]
fn client() -> Result<Client, Box<dyn Error>> {
    Ok(Client {
        http: reqwest::Client::new(),
        base_url: std::env::var("BASE_URL")?,
        api_key: std::env::var("API_KEY")?,
        copies: HashMap::new(),
        free_at: Instant::now(),
    })
}
