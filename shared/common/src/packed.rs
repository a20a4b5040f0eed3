//! Serialises a type in two forms: text on the wire (JSON), and a number or bytes where space matters (the packed log).

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
