//! An HTTP client that returns status, headers and the whole body.

use std::net::Ipv4Addr;
use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Body, Url};
use serde_json::Value;
use tokio::time::sleep;

use crate::secrets;

/// An answer that takes longer than this never comes.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);

/// An HTTP client of one instance.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base_url: String,
    max_repeats: u32,
}

/// An answer as it arrived.
#[derive(Clone, Debug)]
pub struct HttpReply {
    pub status: u16,
    pub headers: HeaderMap,
    pub bytes: Vec<u8>,
    /// How many times the request was repeated before this answer came.
    pub repeats: u32,
}

impl Client {
    pub fn new(base_url: &str) -> Self {
        let mut http = reqwest::Client::builder().no_proxy().timeout(REQUEST_TIMEOUT);
        // RFC 6761 says that these names are loopback, but not every resolver knows it.
        if let Some(host) = Url::parse(base_url).unwrap().host_str().filter(|host| host.ends_with(".localhost")) {
            http = http.resolve(host, (Ipv4Addr::LOCALHOST, 0).into());
        }
        Self { http: http.build().unwrap(), base_url: base_url.to_owned(), max_repeats: 0 }
    }

    /// Repeats a request up to `max_repeats` times while the answer is 503.
    #[must_use]
    pub fn with_max_repeats(self, max_repeats: u32) -> Self {
        Self { max_repeats, ..self }
    }

    /// Sends a `GET` with a key.
    pub async fn get(&self, key: &str, path: &str) -> HttpReply {
        self.send("GET", path, &[("authorization", &format!("Bearer {key}"))]).await
    }

    /// Sends a request without a body.
    pub async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> HttpReply {
        let mut repeats = 0;
        loop {
            let reply = HttpReply { repeats, ..HttpReply::whole(self.open(method, path, headers, "").await).await };
            if reply.status != 503 || repeats == self.max_repeats {
                return reply;
            }
            // The gateway's own 503 has no `Retry-After`.
            sleep(Duration::from_secs(reply.header("retry-after").parse().unwrap_or(1))).await;
            repeats += 1;
        }
    }

    /// Sends a `POST` with a body.
    pub async fn post(&self, path: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> HttpReply {
        HttpReply::whole(self.open("POST", path, headers, body).await).await
    }

    /// Sends a request and returns the answer before its body is read.
    pub async fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> reqwest::Response {
        let method = method.parse().unwrap();
        let mut request = self.http.request(method, format!("{}{path}", self.base_url)).body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.send().await.unwrap()
    }
}

impl HttpReply {
    async fn whole(response: reqwest::Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = response.bytes().await.unwrap().to_vec();
        secrets::search(&bytes, "an answer");
        Self { status, headers, bytes, repeats: 0 }
    }

    /// A header's text, empty if absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|error| {
            panic!("{error}: status {}, body {:?}", self.status, String::from_utf8_lossy(&self.bytes))
        })
    }

    /// The rate-limit headers: limit, remaining, reset.
    pub fn rate(&self) -> (u32, u32, u32) {
        let number = |name| self.header(name).parse().unwrap_or_else(|_| panic!("{name} of {self:?}"));
        (number("x-ratelimit-limit"), number("x-ratelimit-remaining"), number("x-ratelimit-reset"))
    }

    /// The ids of a page's records.
    pub fn ids(&self) -> Vec<String> {
        let body = self.json();
        let items = body["items"].as_array().unwrap_or_else(|| panic!("no items in {body}"));
        items.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
    }
}
