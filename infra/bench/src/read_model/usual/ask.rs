//! Asks a question in the usual way: one walk over the index to count, then the page.

use std::time::Instant;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::{KeysAndAttributes, Select};
use local::meter::CostMeter;
use platform::store::{Row, StoreError};
use serde::Serialize;
use types::paging::Paging;

use super::plan::{ID_ATTRIBUTE, QueryPlan};

/// More entries than a megabyte holds, so that this limit never ends a page. Without any limit, the embedded DynamoDB
/// would read the rest of the partition for each page.
const MAX_PAGE_ENTRIES: i32 = 20_000;

/// What one question costs.
#[derive(Clone, Debug, Serialize)]
pub(in crate::read_model) struct Cost {
    pub(in crate::read_model) wall_ms: f64,
    pub(in crate::read_model) calls: u64,
    pub(in crate::read_model) read_units: f64,
}

/// Asks the tables that the usual way needs.
pub(in crate::read_model) struct Asker {
    client: Client,
    meter: CostMeter,
}

/// A number of matches, and where the walk stood when it had counted them.
type Mark = (usize, Option<Row>);

impl Asker {
    pub(super) fn new(client: &Client) -> Self {
        let meter = CostMeter::default();
        Self { client: meter.attach(client), meter }
    }

    /// Returns the page's records, the total, and what they cost.
    pub(in crate::read_model) async fn ask(
        &self,
        plan: &QueryPlan,
        paging: Paging,
    ) -> Result<(Vec<Row>, usize, Cost), StoreError> {
        self.meter.take();
        let began = Instant::now();
        let (total, mark) = self.count(plan, paging.skip()).await?;
        let keys = if total > paging.skip() { self.keys(plan, paging, mark).await? } else { Vec::new() };
        let page = if keys.is_empty() { Vec::new() } else { self.records(plan, keys).await? };
        let wall_ms = began.elapsed().as_secs_f64() * 1e3;
        let bill = self.meter.take();
        Ok((page, total, Cost { wall_ms, calls: bill.all_calls(), read_units: bill.read_units }))
    }

    /// Counts everything that matches. Returns the total, and the mark from which to look for the page: that of the
    /// last call that began before it.
    async fn count(&self, plan: &QueryPlan, skip: usize) -> Result<(usize, Mark), StoreError> {
        let (mut total, mut mark, mut start) = (0, (0, None), None);
        loop {
            if total <= skip {
                mark = (total, start.clone());
            }
            let counted = self.query(plan).select(Select::Count).set_exclusive_start_key(start).send().await?;
            total += usize::try_from(counted.count).unwrap_or_default();
            start = counted.last_evaluated_key;
            if start.is_none() {
                return Ok((total, mark));
            }
        }
    }

    /// Returns the keys of the page's records.
    async fn keys(&self, plan: &QueryPlan, paging: Paging, (counted, mut start): Mark) -> Result<Vec<Row>, StoreError> {
        let (skip, mut keys) = (paging.skip() - counted, Vec::new());
        loop {
            let mut query = self.query(plan).set_exclusive_start_key(start);
            if plan.filter.is_empty() {
                let missing = i32::try_from(skip + paging.take() - keys.len());
                query = query.limit(missing.unwrap_or(MAX_PAGE_ENTRIES).min(MAX_PAGE_ENTRIES));
            }
            let found = query.send().await?;
            keys.extend(found.items.unwrap_or_default());
            start = found.last_evaluated_key;
            if keys.len() >= skip + paging.take() || start.is_none() {
                return Ok(keys.into_iter().skip(skip).take(paging.take()).collect());
            }
        }
    }

    /// Returns the records, in no particular order. Whoever shows them would sort them by the order of the keys.
    async fn records(&self, plan: &QueryPlan, keys: Vec<Row>) -> Result<Vec<Row>, StoreError> {
        let keys = keys.into_iter().map(|mut key| key.remove_entry(ID_ATTRIBUTE).into_iter().collect()).collect();
        let mut unread = KeysAndAttributes::builder().set_keys(Some(keys)).build().map(Some)?;
        let mut records = Vec::new();
        while let Some(keys) = unread.take() {
            let got = self.client.batch_get_item().request_items(plan.table, keys).send().await?;
            records.extend(got.responses.unwrap_or_default().into_values().flatten());
            unread = got.unprocessed_keys.unwrap_or_default().into_values().next();
        }
        Ok(records)
    }

    fn query(&self, plan: &QueryPlan) -> QueryFluentBuilder {
        let query = self.client.query().table_name(plan.table).index_name(&plan.index);
        let filter = (!plan.filter.is_empty()).then(|| plan.filter.join(" AND "));
        query
            .key_condition_expression(plan.condition.join(" AND "))
            .set_filter_expression(filter)
            .set_expression_attribute_names(Some(plan.names.clone()))
            .set_expression_attribute_values(Some(plan.values.clone()))
            .scan_index_forward(!plan.is_backward)
            .limit(MAX_PAGE_ENTRIES)
    }
}
