//! Walks the catalog, and then keeps the active listings up to date: `walk ROUNDS SECONDS`
//!
//! `BASE_URL` and `API_KEY` are in the environment. Prints a line of JSON for the catalog, for one item with its prices,
//! and for each round.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::{Duration, Instant};

use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde_json::{Value, json};
use tokio::time::sleep;

/// Asks the API within the budget of one scope.
struct Client {
    http: reqwest::Client,
    base_url: String,
    api_key: String,
    /// When the budget has a request left.
    free_at: Instant,
}

impl Client {
    /// Returns the body, and the position in the log of the state that it shows. Returns nothing if it is gone.
    async fn ask(&mut self, path: &str) -> Result<Option<(Value, u64)>, Box<dyn Error>> {
        for failures in 0..10 {
            sleep(self.free_at.saturating_duration_since(Instant::now())).await;
            // Without an answer, the status is 0.
            let (status, headers, body) = self.send(path).await.unwrap_or_default();
            if let Some(wait) = budget_returns(&headers) {
                // A random time more, so that clients do not come together when the minute begins.
                self.free_at = Instant::now() + wait + Duration::from_secs_f64(fastrand::f64());
            }
            if status == 200 {
                let position = text(&headers, "x-log-position").unwrap_or("0").parse()?;
                return Ok(Some((serde_json::from_str(&body)?, position)));
            }
            // The log no longer goes back so far, or was begun anew.
            if status == 410 || body.contains("out_of_range") {
                return Ok(None);
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
        let request = self.http.get(format!("{}{path}", self.base_url)).bearer_auth(&self.api_key);
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

/// Returns the number and the size of the page that begins at this record or before, and reaches furthest. A page begins
/// at a multiple of its size. So only a page of another size can begin within the one before.
fn page_from(begin: u64, limit: u64) -> (u64, u64) {
    let size = (1..=limit).max_by_key(|size| (begin / size + 1) * size).unwrap_or(limit);
    (begin / size + 1, size)
}

/// Returns all records of a list, and the lowest position of the states that they show.
///
/// Finds every record that stays as it is during the walk: a page that has no record of those before may leave a gap.
async fn walk(client: &mut Client, path: &str, limit: u64) -> Result<(Records, u64), Box<dyn Error>> {
    let (mut records, mut lowest, mut read, mut overlap) = (Records::new(), u64::MAX, 0_u64, OVERLAP);
    loop {
        let (page, size) = page_from(read.saturating_sub(overlap), limit);
        let answer = client.ask(&format!("{path}?page={page}&page_size={size}")).await?;
        let (body, position) = answer.ok_or("gone")?;
        lowest = lowest.min(position);
        let found = body["items"].as_array().ok_or("no items")?;
        let known = |record: &Value| record["id"].as_str().is_some_and(|id| records.get(id) == Some(record));
        if page > 1 && !found.iter().any(known) {
            overlap *= 2; // Records before this page have gone. Others, not yet read, have taken their places.
            continue;
        }
        for record in found {
            records.insert(id(record)?, record.clone());
        }
        (read, overlap) = ((page - 1) * size + u64::try_from(found.len())?, OVERLAP);
        if read >= body["total"].as_u64().ok_or("no total")? {
            return Ok((records, lowest));
        }
    }
}

fn id(record: &Value) -> Result<String, &'static str> {
    Ok(record["id"].as_str().ok_or("no id")?.to_owned())
}

/// Brings the listings up to date. Takes one request per thousand changes.
async fn follow(
    client: &mut Client,
    records: &mut Records,
    position: &mut u64,
    limit: u64,
) -> Result<(), Box<dyn Error>> {
    loop {
        let Some((page, _)) = client.ask(&format!("{LISTINGS}/changes?after={position}")).await? else {
            // No round came for weeks.
            (*records, *position) = walk(client, LISTINGS, limit).await?;
            continue;
        };
        for change in page["changes"].as_array().ok_or("no changes")? {
            match change["removed"].as_str() {
                Some(removed) => drop(records.remove(removed)),
                None => drop(records.insert(id(&change["listing"])?, change["listing"].clone())),
            }
        }
        *position = page["position"].as_u64().ok_or("no position")?;
        if page["more"] != true {
            return Ok(());
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let number = |at| std::env::args().nth(at).ok_or("walk ROUNDS SECONDS");
    let (rounds, seconds): (u64, f64) = (number(1)?.parse()?, number(2)?.parse()?);
    let size = std::env::var("PAGE_SIZE").map_or(Ok(100), |size| size.parse())?;
    let [mut catalog, mut listings] = [client()?, client()?];
    let (items, _) = walk(&mut catalog, "/v1/public/catalog", size).await?;
    println!("{}", json!({"items": items.keys().collect::<Vec<_>>()}));
    if let Some(first) = items.keys().next() {
        // All variants with their prices take one request.
        let answer = catalog.ask(&format!("/v1/public/items/{first}?include=prices")).await?;
        let (item, _) = answer.ok_or("gone")?;
        let variants = item["variants"].as_array().ok_or("no variants")?;
        println!("{}", json!({"priced": variants.iter().filter(|one| !one["prices"].is_null()).count()}));
    }
    let (mut found, mut position) = walk(&mut listings, LISTINGS, size).await?;
    for round in 0..rounds {
        if round > 0 {
            sleep(Duration::from_secs_f64(seconds)).await;
        }
        follow(&mut listings, &mut found, &mut position, size).await?;
        println!("{}", json!({"listings": found.keys().collect::<Vec<_>>()}));
    }
    Ok(())
}

const LISTINGS: &str = "/v1/public/listings";
/// How many records a page has in common with the one before, at least.
const OVERLAP: u64 = 2;

#[expect(clippy::disallowed_methods, reason = "unlike the tests, it goes through the proxy of its environment")]
fn client() -> Result<Client, Box<dyn Error>> {
    Ok(Client {
        http: reqwest::Client::new(),
        base_url: std::env::var("BASE_URL")?,
        api_key: std::env::var("API_KEY")?,
        free_at: Instant::now(),
    })
}
