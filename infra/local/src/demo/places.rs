//! The marketplaces that the demo's asks come from. One is disabled, to show that its asks count nowhere.

use types::ids::MarketplaceKey;
use types::records::PublicMarketplace;

/// A marketplace of the demo.
pub(super) struct Place {
    key: &'static str,
    name: &'static str,
    kind: &'static str,
    pub(super) enabled: bool,
    /// Its price level, in percent of what a thing is worth.
    pub(super) level: u64,
}

/// All marketplaces of the demo.
pub(super) const PLACES: [Place; 5] = [
    Place { key: "loot_harbor", name: "Loot Harbor", kind: "p2p", enabled: true, level: 97 },
    Place { key: "pixel_bazaar", name: "Pixel Bazaar", kind: "p2p", enabled: true, level: 100 },
    Place { key: "skin_depot", name: "Skin Depot", kind: "bot", enabled: true, level: 108 },
    Place { key: "trade_wharf", name: "Trade Wharf", kind: "auction", enabled: true, level: 102 },
    Place { key: "old_quay", name: "Old Quay", kind: "bot", enabled: false, level: 71 },
];

impl Place {
    /// Returns its key, parsed.
    pub(super) fn key(&self) -> Option<MarketplaceKey> {
        self.key.parse().ok()
    }

    fn public(&self) -> Option<PublicMarketplace> {
        Some(PublicMarketplace {
            key: self.key()?,
            name: self.name.parse().ok()?,
            link: format!("https://{}.example.com", self.key.replace('_', "-")).parse().ok()?,
            kind: self.kind.parse().ok()?,
            enabled: self.enabled,
        })
    }
}

/// Returns the marketplaces as the API shows them.
pub(super) fn marketplaces() -> impl Iterator<Item = PublicMarketplace> {
    PLACES.iter().filter_map(Place::public)
}
