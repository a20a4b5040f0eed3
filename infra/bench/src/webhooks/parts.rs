//! Measures what each kind of call costs by itself, which shows where a delivery's time goes.

use std::time::Duration;

use bytes::Bytes;
use guard::Policy;
use http::HeaderMap;
use secrets::{EndpointSecret, service_signature, standard_signature};
use serde::Serialize;
use types::clock::{Clock, SystemClock};
use types::event::EventKind;
use uuid::Uuid;
use webhook::transport::{Reach, Transport};
use webhooks::body;
use webhooks::delivery::{Delivery, Dispatch, Progress, Status, Token, claim};

use super::load::account;
use super::receiver::Receiver;
use super::stack::MeteredStack;
use crate::cpu::Stopwatch;
use crate::output::text;

const CALLS_PER_PART: u64 = 2_000;

/// A kind of call, and its CPU time in microseconds.
#[derive(Debug, Serialize)]
pub(super) struct Part {
    pub(super) name: &'static str,
    pub(super) service_us: f64,
    pub(super) stores_us: f64,
    /// The number of these calls per delivery if all batches are full.
    pub(super) per_delivery: f64,
}

pub(super) async fn measure() -> Result<Vec<Part>, String> {
    let (stack, receiver) = (MeteredStack::start().await?, Receiver::start().await?);
    stack.add(account(0), receiver.url.clone()).await?;
    let admin = stack.admin()?;
    let deliveries: Vec<Delivery> = (0..CALLS_PER_PART).map(|_| delivery()).collect();
    let store = &admin.store;
    let mut each = deliveries.iter();
    let put = part("PutItem", 1.0, &stack, async || {
        let Some(delivery) = each.next() else { return Ok(()) };
        store.put_delivery(delivery).await.map(drop).map_err(text)
    });
    let put = put.await?;
    let mut each = deliveries.iter();
    let update = part("UpdateItem", 1.0, &stack, async || {
        let Some(delivery) = each.next() else { return Ok(()) };
        let step = claim(&Dispatch::next_of(delivery), Token::random(), SystemClock::new().now());
        store.step(delivery.id, delivery.endpoint_id, &step).await.map(drop).map_err(text)
    });
    let update = update.await?;
    let accounts = (0..10).map(account).collect();
    let get = part("BatchGetItem of 10", 0.2, &stack, async || store.accounts(&accounts).await.map(drop).map_err(text));
    let get = get.await?;
    let queue = part("SQS, 10 messages", 0.6, &stack, async || {
        let queued = super::load::burst(&stack, 10, 0..1);
        queued.await
    });
    let queue = queue.await?;
    let reach = Reach { policy: Policy::with_loopback(), ..Reach::public() };
    let transport = Transport::new(reach).map_err(text)?;
    let (url, payload) = (receiver.url.as_str(), Bytes::from(deliveries[0].body.clone()));
    let post = part("POST", 1.0, &stack, async || {
        let posted = transport.post(url, HeaderMap::new(), payload.clone()).await;
        posted.outcome.map(drop).map_err(text)
    });
    let post = post.await?;
    let secret = EndpointSecret::from_bits([7; 32]);
    let sign = part("signing", 1.0, &stack, async || {
        let body = deliveries[0].body.as_bytes();
        let signed = service_signature(&secret, body).len()
            + standard_signature([&secret], deliveries[0].id, SystemClock::new().now(), body).len();
        std::hint::black_box(signed);
        Ok(())
    });
    Ok(vec![put, update, get, queue, post, sign.await?])
}

async fn part(
    name: &'static str,
    per_delivery: f64,
    stack: &MeteredStack,
    mut call: impl AsyncFnMut() -> Result<(), String>,
) -> Result<Part, String> {
    let (stores, stopwatch) = (stack.aws.cpu(), Stopwatch::start());
    for _ in 0..CALLS_PER_PART {
        call().await?;
    }
    let each = |time: Duration| time.as_secs_f64() * 1e6 / CALLS_PER_PART as f64;
    let service_us = each(stopwatch.spent().cpu);
    Ok(Part { name, service_us, stores_us: each(stack.aws.cpu().saturating_sub(stores)), per_delivery })
}

fn delivery() -> Delivery {
    let (id, now) = (Uuid::new_v4().into(), SystemClock::new().now());
    let data = EventKind::ListingSold.sample_data().to_string();
    Delivery {
        id,
        endpoint_id: Uuid::nil().into(),
        account_id: account(0),
        event: EventKind::ListingSold,
        is_test: false,
        created_at: now,
        body: body(id, EventKind::ListingSold, now, &data),
        progress: Progress::new(id, Status::Pending, now, now.plus_millis(300_000)),
    }
}
