//! A dead letter: which message it is, why it is here, and where it goes if it is sent again.

use std::collections::HashMap;

use admin::audit::Subject;
use aws_sdk_sqs::types::{Message, MessageSystemAttributeName};
use common::ids::{DeliveryId, MessageId, UserId};
use common::queues::{DEFECT, FIELD, OTHERS, REASON};
use common::resources::{MAX_RECEIVES, Queue};
use common::timestamp::Timestamp;
use serde::Serialize;
use serde_json::Value;
use terminal::count;
use webhooks::QueueMessage;

use crate::cli::{LetterFilter, LetterQueue};
use crate::failure::shortened;

/// A letter as programs see it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Letter {
    pub(super) queue: LetterQueue,
    pub(super) message_id: MessageId,
    /// When its message was sent.
    pub(super) sent_at: Timestamp,
    /// When SQS deletes it.
    pub(super) expires_at: Timestamp,
    /// The message's type, such as `item` or `first`, if it can be read.
    pub(super) r#type: Option<String>,
    /// The id of what the message is about, if it can be read.
    pub(super) entity: Option<String>,
    /// Whose it is, if the message says so.
    pub(super) account_id: Option<UserId>,
    pub(super) cause: Cause,
    /// The field that is to blame; `$` is the message as a whole.
    pub(super) field: Option<String>,
    pub(super) reason: String,
    /// The other fields that are to blame.
    pub(super) others: Option<String>,
    #[serde(skip)]
    pub(super) body: String,
    /// By which SQS knows that the letter was received. It changes with each time.
    #[serde(skip)]
    pub(super) handle: String,
    #[serde(skip)]
    delivery_id: Option<DeliveryId>,
}

/// How a message came to be a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Cause {
    /// It breaks a rule.
    Refused,
    /// It met a defect, or something stored that cannot be read.
    Defect,
    /// SQS moved it, because it was received again and again.
    Received,
    /// Nothing tells.
    Unknown,
}

impl Cause {
    /// Begins the sentence that says why.
    pub(super) const fn sentence(self) -> &'static str {
        match self {
            Self::Refused => "It was refused",
            Self::Defect => "It met a defect",
            Self::Received => "SQS moved it here",
            Self::Unknown => "Nobody knows why it is here",
        }
    }
}

impl Letter {
    /// Takes a received message. One without an id or a handle, which SQS always gives, is left out.
    pub(super) fn new(queue: LetterQueue, message: Message, kept_for_millis: i64) -> Option<Self> {
        let Message { message_id, receipt_handle, body, attributes, message_attributes, .. } = message;
        let (system, body) = (attributes.unwrap_or_default(), body.unwrap_or_default());
        let mut attributes: HashMap<String, String> = message_attributes
            .unwrap_or_default()
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.string_value?)))
            .collect();
        let sent = system.get(&MessageSystemAttributeName::SentTimestamp).and_then(|millis| millis.parse().ok());
        let sent_at = Timestamp::from_millis(sent.unwrap_or_default());
        let (cause, reason) = match (attributes.remove(REASON), attributes.remove(DEFECT)) {
            (Some(reason), _) => (Cause::Refused, reason),
            (None, Some(defect)) => (Cause::Defect, defect),
            (None, None) if system.contains_key(&MessageSystemAttributeName::DeadLetterQueueSourceArn) => {
                (Cause::Received, format!("received {} times without success", count(MAX_RECEIVES.into())))
            }
            (None, None) => (Cause::Unknown, "no reason is attached".to_owned()),
        };
        let parsed: Value = serde_json::from_str(&body).unwrap_or_default();
        let text = |name: &str| parsed.get(name).and_then(Value::as_str).map(shortened);
        let r#type = text("type");
        Some(Self {
            queue,
            message_id: message_id?.parse().ok()?,
            sent_at,
            expires_at: sent_at.plus_millis(kept_for_millis),
            entity: r#type.as_deref().and_then(|kind| text(id_member(kind))),
            r#type,
            account_id: text("account_id").and_then(|id| id.parse().ok()),
            delivery_id: text("delivery_id").and_then(|id| id.parse().ok()),
            cause,
            field: attributes.remove(FIELD),
            reason,
            others: attributes.remove(OTHERS),
            body,
            handle: receipt_handle?,
        })
    }

    pub(super) fn fits(&self, filter: &LetterFilter) -> bool {
        let LetterFilter { reason, entity } = filter;
        reason.as_ref().is_none_or(|text| self.why().contains(text))
            && entity.as_ref().is_none_or(|id| self.entity.as_ref() == Some(id))
    }

    /// What the message is about, such as `item ak-47`.
    pub(super) fn about(&self) -> String {
        let kind = match self.r#type.as_deref() {
            Some("first" | "attempt") => "delivery",
            Some("drain") => "deliveries of account",
            Some(other) => other,
            None => return "a message that cannot be read".to_owned(),
        };
        self.entity.as_ref().map_or_else(|| format!("{kind} without an id"), |id| format!("{kind} {id}"))
    }

    /// Field and reason, such as `variants[0].wear: missing`.
    pub(super) fn why(&self) -> String {
        self.field.as_ref().map_or_else(|| self.reason.clone(), |field| format!("{field}: {}", self.reason))
    }

    /// What the audit line of a change says that it is about.
    pub(super) fn subject(&self) -> Subject {
        Subject { message_id: Some(self.message_id), delivery_id: self.delivery_id, ..Subject::default() }
    }
}

/// The member of a message that has the id of what it is about.
fn id_member(kind: &str) -> &'static str {
    match kind {
        "marketplace" => "key",
        "quote" => "variant_id",
        "balance" | "drain" => "account_id",
        "first" | "attempt" => "delivery_id",
        _ => "id",
    }
}

/// Returns the queue that takes a message which was dead. The error says why it would only become a dead letter again.
pub(super) fn destination(queue: LetterQueue, body: &str, now: Timestamp) -> Result<Queue, String> {
    match queue {
        LetterQueue::Feed => match feed::parse(body, now) {
            Ok(_) => Ok(Queue::Feed),
            Err(rejection) => {
                let first = if rejection.field.is_empty() { rejection.reason.clone() } else { rejection.to_string() };
                let all: Vec<_> = [first].into_iter().chain(rejection.others.iter().map(ToString::to_string)).collect();
                Err(shortened(&all.join("; ")))
            }
        },
        // The lanes in which the service sends these itself.
        LetterQueue::Webhooks => match QueueMessage::parse(body) {
            Ok(QueueMessage::First(_)) => Ok(Queue::WebhooksFirst),
            Ok(QueueMessage::Attempt(_)) => Ok(Queue::WebhooksRetry),
            Ok(QueueMessage::Drain(_)) => Ok(Queue::WebhooksSlow),
            Err(error) => Err(shortened(&error.to_string())),
        },
    }
}
