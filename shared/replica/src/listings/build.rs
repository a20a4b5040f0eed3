//! Builds a whole index at once. Each order is sorted only once, and then dealt out to items and variants.

use super::group::Group;
use super::rows::{PackedListings, Symbol};
use super::variant::VariantListings;
use crate::sequence::{Exact, Slot};

/// The groups of all listings.
pub(super) struct Groups {
    pub(super) all: Group,
    /// By the item's number.
    pub(super) items: Vec<Group>,
    /// By the variant's number.
    pub(super) variants: Vec<VariantListings>,
}

impl Groups {
    pub(super) fn new(rows: &PackedListings) -> Self {
        let newest = newest_first(rows);
        let by_price = cheapest_first(rows, &newest);
        let deal = |order: &[Slot], numbers: usize, symbol: &dyn Fn(Slot) -> Symbol| Dealt::new(order, numbers, symbol);
        let groups = |numbers: usize, symbol: &dyn Fn(Slot) -> Symbol| {
            let (newest, by_price) = (deal(&newest, numbers, symbol), deal(&by_price, numbers, symbol));
            (0..numbers).map(|number| Group::new(newest.hand(number), by_price.hand(number), rows)).collect::<Vec<_>>()
        };
        let items = groups(rows.items.len(), &|slot| rows.get(slot).item);
        let variants = groups(rows.variants.len(), &|slot| rows.get(slot).variant);
        let variants = variants.into_iter().map(|group| VariantListings::new(group, rows)).collect();
        Self { all: Group::new(&newest, &by_price, rows), items, variants }
    }
}

fn newest_first(rows: &PackedListings) -> Vec<Slot> {
    let mut keyed: Vec<_> = (0..rows.count()).map(|slot| (rows.get(slot).created_at, slot)).collect();
    keyed.sort_unstable_by(|(a, one), (b, other)| b.cmp(a).then_with(|| rows.get(*one).id.cmp(&rows.get(*other).id)));
    keyed.into_iter().map(|(_, slot)| slot).collect()
}

/// Sorts by price. Slots of equal prices stay in the order of `newest`.
fn cheapest_first(rows: &PackedListings, newest: &[Slot]) -> Vec<Slot> {
    let mut keyed: Vec<_> = newest.iter().zip(0_u32..).map(|(slot, place)| (rows.cents(*slot), place)).collect();
    keyed.sort_unstable();
    keyed.into_iter().map(|(_, place)| newest[place as usize]).collect()
}

/// Slots dealt out to numbers. Each number's hand keeps the order of the whole.
struct Dealt {
    slots: Vec<Slot>,
    /// Where each number's hand ends.
    ends: Vec<u32>,
}

impl Dealt {
    /// Deals slots out to the numbers below `numbers`. A slot whose symbol is none of these is left out.
    fn new(order: &[Slot], numbers: usize, symbol: &dyn Fn(Slot) -> Symbol) -> Self {
        let symbols: Vec<Symbol> = order.iter().map(|slot| symbol(*slot)).collect();
        let mut ends = vec![0_u32; numbers];
        for symbol in &symbols {
            if let Some(count) = ends.get_mut(*symbol as usize) {
                *count += 1;
            }
        }
        let mut dealt = 0;
        for end in &mut ends {
            dealt += std::mem::replace(end, dealt);
        }
        let mut slots = vec![0; dealt as usize];
        for (slot, symbol) in order.iter().zip(symbols) {
            if let Some(next) = ends.get_mut(symbol as usize) {
                slots[*next as usize] = *slot;
                *next += 1;
            }
        }
        Self { slots, ends }
    }

    fn hand(&self, number: usize) -> &[Slot] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.slots[start as usize..self.ends[number] as usize]
    }
}
