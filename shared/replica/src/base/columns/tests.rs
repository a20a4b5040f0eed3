use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use common::ids::Id8;
use common::money::Usd;
use common::records::{ListingKind, PublicItem, PublicListing};
use common::timestamp::Timestamp;

fn listings() -> impl Strategy<Value = PublicListing> {
    let own = (any::<u128>(), any::<u32>(), 0u64..=99_999_999_999_999, any::<bool>(), any::<bool>());
    let shared = (prop::option::of(0u8..3), prop::option::of(0u128..3), prop::option::of(0u8..3));
    (own, shared, 0i64..4_000_000_000_000).prop_map(
        |((id, id8, cents, p2p, is_auction), (item, variant, name), millis)| PublicListing {
            id: Uuid::from_u128(id).into(),
            id8: Id8::from_bits(id8),
            price_usd: Usd::from_cents(cents),
            kind: if p2p { ListingKind::P2p } else { ListingKind::Bot },
            is_auction,
            created_at: Timestamp::from_millis(millis),
            item_id: item.map(|item| format!("item-{item}").parse().unwrap()),
            variant_id: variant.map(|variant| Uuid::from_u128(variant).into()),
            market_hash_name: name.map(|name| format!("★ {name} |").parse().unwrap()),
        },
    )
}

fn items() -> impl Strategy<Value = PublicItem> {
    let text = || prop::option::of("[a-zÄ★ |]{1,9}");
    (0u32..1_000, 0u8..3, text(), text(), any::<bool>()).prop_map(|(id, kind, name, slug, image)| PublicItem {
        id: format!("i{id}").parse().unwrap(),
        kind: format!("kind_{kind}").parse().unwrap(),
        name: name.map(|name| name.parse().unwrap()),
        slug: slug.map(|slug| slug.parse().unwrap()),
        image: image.then(|| format!("https://img.example/{id}.png").parse().unwrap()),
    })
}

fn back<C: Columns>(records: &[C::Record]) -> Vec<C::Record> {
    let packed = postcard::to_stdvec(&C::from_records(records)).unwrap();
    let columns: C = postcard::from_bytes(&packed).unwrap();
    assert!(columns.is_sound());
    assert_eq!(columns.len(), records.len());
    columns.records().unwrap()
}

proptest! {
    #[test]
    fn listings_come_back_as_they_were(listings in prop::collection::vec(listings(), 0..60)) {
        prop_assert_eq!(back::<ListingColumns>(&listings), listings);
    }

    #[test]
    fn items_come_back_as_they_were(items in prop::collection::vec(items(), 0..60)) {
        prop_assert_eq!(back::<ItemColumns>(&items), items);
    }

    #[test]
    fn what_is_not_kept_is_gone_and_the_rest_as_it_was(
        listings in prop::collection::vec((listings(), any::<bool>()), 0..60),
        items in prop::collection::vec((items(), any::<bool>()), 0..60),
    ) {
        let mut columns = ListingColumns::from_records(listings.iter().map(|(listing, _)| listing));
        columns.retain(|id| listings.iter().any(|(listing, keep)| *keep && listing.id == *id));
        let kept: Vec<_> = listings.into_iter().filter(|(_, keep)| *keep).map(|(listing, _)| listing).collect();
        prop_assert_eq!(columns.records().unwrap(), kept);
        // Item ids may repeat here. If one item is kept, so are all others with its id.
        let is_kept = |id: &common::ids::ItemId| items.iter().any(|(item, keep)| *keep && item.id == *id);
        let mut columns = ItemColumns::from_records(items.iter().map(|(item, _)| item));
        columns.retain(is_kept);
        let kept: Vec<_> = items.iter().map(|(item, _)| item.clone()).filter(|item| is_kept(&item.id)).collect();
        prop_assert_eq!(columns.records().unwrap(), kept);
    }

    #[test]
    fn what_passes_for_sound_can_be_read(bytes in prop::collection::vec(0u8..6, 0..60)) {
        if let Ok(columns) = postcard::from_bytes::<ListingColumns>(&bytes) && columns.is_sound() {
            prop_assert_eq!(columns.rows().count(), columns.len());
            let _ = columns.records();
        }
        if let Ok(columns) = postcard::from_bytes::<ItemColumns>(&bytes) && columns.is_sound() {
            let _ = columns.records();
            prop_assert_eq!(columns.len(), columns.into_rows().count());
        }
    }
}
