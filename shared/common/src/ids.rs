//! Identifiers and open-ended words, each parsed once at the edge.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

use super::names::text_or_packed;

/// A text does not have the form of an identifier. The message states the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("must be {0}")]
pub struct IdError(&'static str);

/// Parses a hyphenated UUID in any case. Other spellings (braces, URN, no hyphens) are refused.
fn hyphenated(text: &str) -> Result<Uuid, IdError> {
    const FORM: IdError = IdError("a hyphenated UUID");
    if text.len() != 36 {
        return Err(FORM);
    }
    Uuid::try_parse(text).map_err(|_| FORM)
}

macro_rules! uuid_id {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        text_or_packed!($name, Uuid, |id| id.0, $name);

        impl $name {
            pub const fn uuid(self) -> Uuid {
                self.0
            }
        }

        impl From<Uuid> for $name {
            fn from(uuid: Uuid) -> Self {
                Self(uuid)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                hyphenated(text).map(Self)
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;

            fn try_from(text: String) -> Result<Self, IdError> {
                text.parse()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }
    )*};
}

uuid_id! {
    /// Identifies an account of the marketplace, which owns keys, orders and a balance.
    UserId;
    /// Identifies an API key in public. It is not the key's secret text.
    KeyId;
    /// Identifies a variant: an item combined with a wear and a StatTrak flag.
    VariantId;
    ListingId;
    OrderId;
    /// Identifies a trade, between users or with the service's bot.
    TradeId;
    /// Identifies a deposit to a balance.
    DepositId;
    /// Identifies a withdrawal from a balance.
    WithdrawalId;
    /// Identifies an event: something that happened to an account, as the feed reports it.
    EventId;
    /// Identifies an endpoint that an account registered for its events.
    EndpointId;
    /// Identifies the delivery of an event to an endpoint. It is the same on every attempt.
    DeliveryId;
    /// Identifies the notice that an endpoint was switched off.
    NoticeId;
    /// Identifies a message in its queue, as SQS does.
    MessageId;
    /// A unique name of a message or of a lease.
    Token;
}

impl Token {
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }
}

macro_rules! text_id {
    ($($(#[$doc:meta])* $name:ident($form:literal, $valid:expr);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(String);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;

            fn try_from(text: String) -> Result<Self, IdError> {
                let valid: fn(&str) -> bool = $valid;
                if valid(&text) { Ok(Self(text)) } else { Err(IdError($form)) }
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                text.to_owned().try_into()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

fn word(text: &str) -> bool {
    (1..=32).contains(&text.len()) && text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_'))
}

fn bounded(text: &str, max: usize) -> bool {
    (1..=max).contains(&text.len())
}

text_id! {
    /// An item's identifier, fit for a URL path.
    ItemId("1 to 128 of A-Z a-z 0-9 . _ ~ -, but not . or ..", |t| {
        // Clients take these for steps up and down the path.
        bounded(t, 128) && ![".", ".."].contains(&t) && t.bytes().all(|b| b.is_ascii_alphanumeric() || b"._~-".contains(&b))
    });
    /// An item's kind (`skin`, `sticker`, …); the list is open-ended.
    ItemKind("1 to 32 of a-z 0-9 _", word);
    /// An order's status (`awaiting_delivery`, `delivered`, `refunded`, …); the list is open-ended.
    OrderStatus("1 to 32 of a-z 0-9 _", word);
    /// A marketplace's kind; the list is open-ended.
    MarketplaceKind("1 to 32 of a-z 0-9 _", word);
    MarketplaceKey("1 to 64 of A-Z a-z 0-9 . _ ~ -", |t| {
        bounded(t, 64) && t.bytes().all(|b| b.is_ascii_alphanumeric() || b"._~-".contains(&b))
    });
    /// A name or slug shown to people; at most 1,024 bytes.
    Label("1 to 1,024 bytes without control characters", |t| bounded(t, 1_024) && !t.chars().any(char::is_control));
    /// A web address shown to people, not called by the service; at most 2,048 bytes.
    Link("an http or https URL of at most 2,048 bytes", |t| {
        bounded(t, 2_048)
            && ["https://", "http://"].iter().any(|s| t.get(..s.len()).is_some_and(|t| t.eq_ignore_ascii_case(s)))
            && !t.chars().any(|c| c.is_control() || c.is_whitespace())
    });
}

/// A listing's short id, used in links of the form `/l/{id8}`: eight lower-case hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id8(u32);

impl Id8 {
    /// The id as a number, for packed storage.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The id from packed storage.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}

impl TryFrom<String> for Id8 {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        const FORM: IdError = IdError("eight of 0-9 a-f");
        if text.len() != 8 || !text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(FORM);
        }
        u32::from_str_radix(&text, 16).map(Self).map_err(|_| FORM)
    }
}

impl fmt::Display for Id8 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

text_or_packed!(Id8, u32, |id| id.0, Id8);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_hyphenated_in_any_case_and_answered_in_lower_case() {
        let id: UserId = "6F9619FF-8B86-D011-B42D-00C04FC964FF".parse().unwrap();
        assert_eq!(id.to_string(), "6f9619ff-8b86-d011-b42d-00c04fc964ff");
        for bad in [
            "",
            "6f9619ff8b86d011b42d00c04fc964ff",
            "{6f9619ff-8b86-d011-b42d-00c04fc964ff}",
            "urn:uuid:6f9619ff-8b86-d011-b42d-00c04fc964ff",
            "6f9619ff-8b86-d011-b42d-00c04fc964fg",
        ] {
            assert!(bad.parse::<UserId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn words_and_ids_keep_to_their_alphabets() {
        assert!("ak-47_red.line~1".parse::<ItemId>().is_ok());
        assert!("ak 47".parse::<ItemId>().is_err());
        assert!("x".repeat(129).parse::<ItemId>().is_err());
        assert!("Skin".parse::<ItemKind>().is_err());
        assert!("javascript:alert(1)".parse::<Link>().is_err());
        assert_eq!(Id8::try_from("00ab12ef".to_owned()).unwrap().to_string(), "00ab12ef");
        assert!(Id8::try_from("00AB12EF".to_owned()).is_err());
    }
}
