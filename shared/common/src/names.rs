//! How values are written: as text on the wire and in tables, in less space in packed formats.
//!
//! A closed list of names is an enum whose members, names, parsing and serialising all come from one declaration. So a
//! new member cannot be forgotten in one of them.

use std::fmt;
use std::str::FromStr;

use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serializer};

/// An enum that [`closed_enum!`](crate::closed_enum) declares.
pub trait ClosedEnum: Copy + fmt::Debug + FromStr<Err = UnknownName> + 'static {
    /// Every member, in the order of its declaration. Packed formats store a member's place in it.
    const MEMBERS: &'static [Self];

    /// Returns the name in tables and on the wire.
    fn name(self) -> &'static str;

    /// Returns the member's place in the list.
    fn place(self) -> u32;
}

/// A name that is not in a closed list. The error shows the list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be one of {0}")]
pub struct UnknownName(String);

/// Returns the member with this name.
pub fn parse<T: ClosedEnum>(text: &str) -> Result<T, UnknownName> {
    let found = T::MEMBERS.iter().copied().find(|member| member.name() == text);
    found.ok_or_else(|| UnknownName(T::MEMBERS.iter().map(|member| member.name()).collect::<Vec<_>>().join(", ")))
}

/// Writes the name, or in a packed format the place.
pub fn serialize<T: ClosedEnum, S: Serializer>(member: T, serializer: S) -> Result<S::Ok, S::Error> {
    if serializer.is_human_readable() {
        serializer.serialize_str(member.name())
    } else {
        serializer.serialize_u32(member.place())
    }
}

/// Reads what [`serialize`] wrote. Anything but a string is refused where names are expected.
pub fn deserialize<'de, T: ClosedEnum, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    if deserializer.is_human_readable() {
        return String::deserialize(deserializer)?.parse().map_err(D::Error::custom);
    }
    let place = u32::deserialize(deserializer)?;
    let found = T::MEMBERS.get(place as usize).copied();
    found.ok_or_else(|| D::Error::invalid_value(Unexpected::Unsigned(place.into()), &"a place in the list"))
}

/// Declares an enum together with the name of each member.
#[macro_export]
macro_rules! closed_enum {
    (
        $(#[$list:meta])+
        pub enum $name:ident {
            $($(#[$doc:meta])* $member:ident = $wire:literal,)+
        }
    ) => {
        $(#[$list])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$doc])* $member,)+
        }

        impl $name {
            /// Every member, in the order of the list.
            pub const ALL: [Self; [$($wire),+].len()] = [$(Self::$member),+];

            /// Returns the name in tables and on the wire.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$member => $wire,)+
                }
            }
        }

        impl $crate::names::ClosedEnum for $name {
            const MEMBERS: &'static [Self] = &Self::ALL;

            fn name(self) -> &'static str {
                self.as_str()
            }

            fn place(self) -> u32 {
                self as u32
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::names::UnknownName;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $crate::names::parse(text)
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::names::serialize(*self, serializer)
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::names::deserialize(deserializer)
            }
        }
    };
}

/// Implements `Serialize` and `Deserialize`. Human-readable formats get the type's text, compact ones get `$packed`.
macro_rules! text_or_packed {
    ($name:ty, $packed:ty, $pack:expr, $unpack:expr) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() {
                    serializer.collect_str(self)
                } else {
                    let pack: fn(&$name) -> $packed = $pack;
                    serde::Serialize::serialize(&pack(self), serializer)
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                if deserializer.is_human_readable() {
                    let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                    <$name>::try_from(text).map_err(serde::de::Error::custom)
                } else {
                    let unpack: fn($packed) -> $name = $unpack;
                    <$packed as serde::Deserialize>::deserialize(deserializer).map(unpack)
                }
            }
        }
    };
}

pub(crate) use text_or_packed;

#[cfg(test)]
#[expect(unreachable_pub, reason = "the macro declares public enums")]
mod tests {
    closed_enum! {
        /// Colours of a flag.
        pub enum Colour {
            Red = "red",
            /// As on a summer's day.
            SkyBlue = "sky.blue",
        }
    }

    #[test]
    fn names_are_read_back_and_others_refused_with_the_list() {
        assert_eq!(Colour::ALL.map(|colour| colour.to_string().parse()), Colour::ALL.map(Ok));
        let refused = "Red".parse::<Colour>().unwrap_err();
        assert_eq!(refused.to_string(), "must be one of red, sky.blue");
    }

    #[test]
    fn json_holds_the_name_as_a_string_and_nothing_else() {
        assert_eq!(serde_json::to_string(&Colour::SkyBlue).unwrap(), r#""sky.blue""#);
        assert_eq!(serde_json::from_str::<Colour>(r#""sky.blue""#).unwrap(), Colour::SkyBlue);
        for bad in [r#"{"red":null}"#, "0", r#""blue""#, "null"] {
            assert!(serde_json::from_str::<Colour>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_packed_format_holds_the_place() {
        assert_eq!(postcard::to_stdvec(&Colour::ALL).unwrap(), [0, 1]);
        assert_eq!(postcard::from_bytes::<[Colour; 2]>(&[1, 0]).unwrap(), [Colour::SkyBlue, Colour::Red]);
        assert!(postcard::from_bytes::<Colour>(&[2]).is_err());
    }
}
