//! The marketplaces that the demo's asks come from. One is disabled, to show that its asks count nowhere.

use types::ids::MarketplaceKey;
use types::records::PublicMarketplace;

/// A marketplace of the demo.
pub(super) struct DemoMarketplace {
    key: &'static str,
    name: &'static str,
    kind: &'static str,
    pub(super) enabled: bool,
    /// Its price level, in percent of what a thing is worth.
    pub(super) price_percent: u64,
}

/// All marketplaces of the demo.
pub(super) const MARKETPLACES: [DemoMarketplace; 5] = [
    DemoMarketplace { key: "loot_harbor", name: "Loot Harbor", kind: "p2p", enabled: true, price_percent: 97 },
    DemoMarketplace { key: "pixel_bazaar", name: "Pixel Bazaar", kind: "p2p", enabled: true, price_percent: 100 },
    DemoMarketplace { key: "skin_depot", name: "Skin Depot", kind: "bot", enabled: true, price_percent: 108 },
    DemoMarketplace { key: "trade_wharf", name: "Trade Wharf", kind: "auction", enabled: true, price_percent: 102 },
    DemoMarketplace { key: "old_quay", name: "Old Quay", kind: "bot", enabled: false, price_percent: 71 },
];

impl DemoMarketplace {
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
    MARKETPLACES.iter().filter_map(DemoMarketplace::public)
}
