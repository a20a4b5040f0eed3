//! Finds the deliveries of an endpoint, newest first or oldest first, and ends those of a removed one. The indexes that find them may lag a little, but
//! the deliveries themselves are read strongly consistently.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, Select};
use thiserror::Error;

use super::deliveries::from_row;
use super::table::{CREATED_AT, DELIVERIES_INDEX, ENDPOINT_ID, LISTED, PK, STATUSES_INDEX};
use super::{WebhookStore, table};
use crate::delivery::{Delivery, Status, end_for_removed_endpoint};
use common::event::EventKind;
use common::ids::{DeliveryId, EndpointId};
use common::rows::{Unreadable, get_rows};
use common::store::{Attributes, Row, StoreError, n, s};
use common::timestamp::Timestamp;

/// The most rows of a page, because this is the largest number of keys in a `BatchGetItem` (DynamoDB's limit).
pub const MAX_PAGE_ROWS: i32 = 100;
/// How often an index is read for one page of a list. A page whose filter finds less may be shorter than asked for.
const MAX_READS: u32 = 20;

/// A page of an endpoint's deliveries.
#[derive(Clone, Debug, Default)]
pub struct DeliveryPage {
    /// In the order that was asked for.
    pub deliveries: Vec<Delivery>,
    pub unreadable: Vec<Unreadable>,
    pub next: Option<StartKey>,
}

/// A page of a list of an endpoint's deliveries.
#[derive(Clone, Debug, Default)]
pub struct DeliveryList {
    /// Newest first.
    pub deliveries: Vec<Delivery>,
    /// Deliveries that cannot be read. Some of them may not be of the kind that was asked for.
    pub unreadable: Vec<Unreadable>,
    /// Where the next page begins.
    pub next: Option<DeliveryCursor>,
}

/// Where a page begins.
pub type StartKey = HashMap<String, AttributeValue>;

/// The last delivery of a page. Its text is the milliseconds of the delivery's creation and its id. It names no endpoint.
/// So it can only continue a list that its holder may read anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryCursor {
    created_at: Timestamp,
    id: DeliveryId,
}

/// A text is not a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("must be the cursor of the page before")]
pub struct DeliveryCursorError;

/// What became of the deliveries of a removed endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removal {
    /// How many deliveries were ended.
    pub ended: u64,
    /// Deliveries that cannot be read, and were left as they are.
    pub unreadable: Vec<Unreadable>,
    /// Whether there are more, because there was no time for all, or because attempts of some are under way.
    pub is_unfinished: bool,
}

/// Which deliveries of an endpoint a list has.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeliveryFilter {
    pub status: Option<Status>,
    pub event: Option<EventKind>,
    /// When they were created.
    pub span: Option<Span>,
}

/// A span of time, both ends included. If the last moment lies before the first, nothing lies within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub first: Timestamp,
    pub last: Timestamp,
}

/// The entries of an index for one endpoint, and perhaps one status.
struct Listed {
    index: &'static str,
    partition_key: &'static str,
    partition: String,
    span: Option<Span>,
}

/// An entry of an index, and the delivery for which it stands.
struct Entry {
    key: Row,
    delivery: Result<Delivery, Unreadable>,
}

impl WebhookStore {
    /// Returns a page of a list, newest first, of at most `limit` deliveries. It has fewer only if there are no more, or
    /// if many had to be read that the filter leaves out. If it has a next page, that is not empty, with the same
    /// exception.
    pub async fn list_deliveries(
        &self,
        endpoint: EndpointId,
        filter: &DeliveryFilter,
        from: Option<DeliveryCursor>,
        limit: usize,
    ) -> Result<DeliveryList, StoreError> {
        let listed = Listed::of(endpoint, filter.status, filter.span);
        let mut list = DeliveryList::default();
        // DynamoDB does not take a start that lies outside the span.
        let from = match (from, filter.span) {
            (Some(from), Some(span)) if from.created_at > span.last => None,
            (Some(from), Some(span)) if from.created_at < span.first => return Ok(list),
            (from, _) => from,
        };
        if listed.is_empty() {
            return Ok(list);
        }
        let mut from = from.map(|from| listed.start_key(&from));
        for _ in 0..MAX_READS {
            let query = self.query(&listed).scan_index_forward(false).set_exclusive_start_key(from);
            let (entries, next) = self.entries(query.limit(MAX_PAGE_ROWS)).await?;
            for Entry { key, delivery } in entries {
                let is_wanted = delivery.as_ref().map_or(true, |delivery| filter.has(delivery));
                if is_wanted && list.deliveries.len() >= limit {
                    return Ok(list.sorted());
                }
                list.next = DeliveryCursor::from_start_key(&key);
                match delivery {
                    Ok(delivery) if is_wanted => list.deliveries.push(delivery),
                    Ok(_) => {}
                    Err(unreadable) => list.unreadable.push(unreadable),
                }
            }
            list.next = next.as_ref().and_then(DeliveryCursor::from_start_key);
            from = next;
            if from.is_none() {
                break;
            }
        }
        Ok(list.sorted())
    }

    /// Returns a page of the deliveries of an endpoint that have one status, oldest first, of a span if there is one.
    /// Delivered ones are not found. An index finds them, so some may just have got another status: they are left out.
    pub async fn deliveries_with(
        &self,
        endpoint: EndpointId,
        status: Status,
        span: Option<Span>,
        from: Option<StartKey>,
    ) -> Result<DeliveryPage, StoreError> {
        let listed = Listed::of(endpoint, Some(status), span);
        if listed.is_empty() || status == Status::Delivered {
            return Ok(DeliveryPage::default());
        }
        let query = self.query(&listed).limit(MAX_PAGE_ROWS).set_exclusive_start_key(from);
        let (entries, next) = self.entries(query).await?;
        let mut page = DeliveryPage { next, ..DeliveryPage::default() };
        for Entry { delivery, .. } in entries {
            match delivery {
                Ok(delivery) if delivery.progress.status == status => page.deliveries.push(delivery),
                Ok(_) => {}
                Err(unreadable) => page.unreadable.push(unreadable),
            }
        }
        page.deliveries.sort_by_key(|delivery| (delivery.created_at, delivery.id));
        Ok(page)
    }

    /// Counts the deliveries that [`Self::deliveries_with`] would find from there on, and stops counting at `most`.
    pub async fn count_with(
        &self,
        endpoint: EndpointId,
        status: Status,
        span: Option<Span>,
        mut from: Option<StartKey>,
        most: u64,
    ) -> Result<u64, StoreError> {
        let listed = Listed::of(endpoint, Some(status), span);
        if listed.is_empty() {
            return Ok(0);
        }
        let mut count = 0;
        loop {
            let found = self.query(&listed).select(Select::Count).set_exclusive_start_key(from).send().await?;
            count += u64::from(found.count.unsigned_abs());
            from = found.last_evaluated_key;
            if from.is_none() || count >= most {
                return Ok(count.min(most));
            }
        }
    }

    /// Ends the deliveries of an endpoint for as long as there is time, except those of which an attempt is being made.
    /// Such a delivery ends with that attempt or, if there is a retry, with that. One that has ended is no longer found,
    /// so whoever comes later goes on with the rest.
    pub async fn end_deliveries(
        &self,
        id: EndpointId,
        now: Timestamp,
        has_time: impl Fn() -> bool,
    ) -> Result<Removal, StoreError> {
        let mut removal = Removal::default();
        for status in [Status::Pending, Status::Held] {
            let mut from = None;
            loop {
                let page = self.deliveries_with(id, status, None, from).await?;
                for delivery in &page.deliveries {
                    if !has_time() {
                        removal.is_unfinished = true;
                        return Ok(removal);
                    }
                    if let Some(step) = end_for_removed_endpoint(&delivery.progress, now) {
                        let is_ended = self.apply(delivery.id, id, &step).await?;
                        removal.ended += u64::from(is_ended);
                        removal.is_unfinished |= !is_ended;
                    }
                }
                removal.unreadable.extend(page.unreadable);
                from = page.next;
                if from.is_none() {
                    break;
                }
            }
        }
        Ok(removal)
    }

    fn query(&self, listed: &Listed) -> QueryFluentBuilder {
        let query = self
            .client
            .query()
            .table_name(&self.table)
            .index_name(listed.index)
            .expression_attribute_names("#partition", listed.partition_key)
            .expression_attribute_values(":partition", s(&listed.partition));
        let Some(span) = listed.span else { return query.key_condition_expression("#partition = :partition") };
        query
            .key_condition_expression("#partition = :partition AND #created BETWEEN :first AND :last")
            .expression_attribute_names("#created", CREATED_AT)
            .expression_attribute_values(":first", n(span.first.millis()))
            .expression_attribute_values(":last", n(span.last.millis()))
    }

    /// Reads a part of an index and the deliveries that it names, in the order of the index.
    async fn entries(&self, query: QueryFluentBuilder) -> Result<(Vec<Entry>, Option<StartKey>), StoreError> {
        let found = query.send().await?;
        let items = found.items.unwrap_or_default();
        let rows = get_rows(&self.client, &self.table, items.iter().map(table::key_of).collect()).await?;
        let partition = |row: &Row| Attributes(row).text(PK).map(str::to_owned);
        let mut rows: HashMap<String, Row> = rows.into_iter().filter_map(|row| Some((partition(&row)?, row))).collect();
        let entries = items.into_iter().filter_map(|key| {
            let row = rows.remove(&partition(&key)?)?;
            let delivery = from_row(&row).map_err(|error| Unreadable::new(&row, error));
            Some(Entry { key, delivery })
        });
        Ok((entries.collect(), found.last_evaluated_key))
    }
}

impl Listed {
    fn of(endpoint: EndpointId, status: Option<Status>, span: Option<Span>) -> Self {
        match status.and_then(|status| table::listed(endpoint, status)) {
            Some(partition) => Self { index: STATUSES_INDEX, partition_key: LISTED, partition, span },
            None => Self { index: DELIVERIES_INDEX, partition_key: ENDPOINT_ID, partition: endpoint.to_string(), span },
        }
    }

    /// Returns whether the span is empty. DynamoDB takes such a condition as invalid.
    fn is_empty(&self) -> bool {
        self.span.is_some_and(|span| span.last < span.first)
    }

    /// Returns the key after which a page begins.
    fn start_key(&self, cursor: &DeliveryCursor) -> StartKey {
        let mut key = table::delivery(cursor.id);
        key.insert(self.partition_key.to_owned(), s(&self.partition));
        key.insert(CREATED_AT.to_owned(), n(cursor.created_at.millis()));
        key
    }
}

impl DeliveryFilter {
    fn has(&self, delivery: &Delivery) -> bool {
        self.status.is_none_or(|status| delivery.progress.status == status)
            && self.event.is_none_or(|event| delivery.event == event)
    }
}

impl DeliveryList {
    fn sorted(mut self) -> Self {
        self.deliveries.sort_by_key(|delivery| std::cmp::Reverse((delivery.created_at, delivery.id)));
        self
    }
}

impl DeliveryCursor {
    /// Reads the key of an entry of an index.
    fn from_start_key(key: &StartKey) -> Option<Self> {
        let read = Attributes(key);
        let created_at = read.required_number(CREATED_AT).ok()?;
        Some(Self { created_at: Timestamp::from_millis(created_at), id: read.text(PK).and_then(table::delivery_of)? })
    }
}

impl fmt::Display for DeliveryCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.created_at.millis(), self.id)
    }
}

impl FromStr for DeliveryCursor {
    type Err = DeliveryCursorError;

    fn from_str(text: &str) -> Result<Self, DeliveryCursorError> {
        let (millis, id) = text.split_once('.').ok_or(DeliveryCursorError)?;
        let created_at = millis.parse().map(Timestamp::from_millis).map_err(|_| DeliveryCursorError)?;
        Ok(Self { created_at, id: id.parse().map_err(|_| DeliveryCursorError)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use common::store::n;

    const TEXT: &str = "1795169072000.6f9619ff-8b86-d011-b42d-00c04fc964ff";

    #[test]
    fn a_cursor_is_read_back_from_its_text_and_from_its_key() {
        let cursor: DeliveryCursor = TEXT.parse().unwrap();
        assert_eq!(cursor.to_string(), TEXT);
        let mut key = table::delivery(cursor.id);
        key.insert(CREATED_AT.to_owned(), n(cursor.created_at.millis()));
        assert_eq!(DeliveryCursor::from_start_key(&key), Some(cursor));
        for bad in ["", "1795169072000", "soon.6f9619ff-8b86-d011-b42d-00c04fc964ff", "1795169072000.1"] {
            assert_eq!(bad.parse::<DeliveryCursor>(), Err(DeliveryCursorError), "{bad}");
        }
    }
}
