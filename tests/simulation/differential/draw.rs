//! Draws what the feed reports and what clients ask for: from few records and few values, so that versions, names,
//! prices and times meet.

use std::collections::BTreeSet;
use std::rc::Rc;

use fastrand::Rng;
use uuid::Uuid;

use super::oracle::{Oracle, Paging, Question};
use super::records::{
    Balance, Cents, Change, Item, Key, Listing, Marketplace, Millis, Order, OrderLine, Quote, Record, Variant,
};

pub(super) const ACCOUNTS: [Uuid; 2] = [Uuid::from_u128(0xa1), Uuid::from_u128(0xa2)];

/// How many records there are in a market of the scale 1.
const ITEMS: u32 = 40;
const VARIANTS: u32 = 10;
const LISTINGS: u32 = 90;
const MARKETPLACES: usize = 5;
const MOST_CENTS: u64 = 99_999_999_999_999;
const PRICES: [u64; 12] = [0, 1, 2, 99, 100, 101, 1_250, 1_250, 1_251, 99_950, MOST_CENTS - 1, MOST_CENTS];
const KINDS: [&str; 4] = ["skin", "sticker", "case", "k_1"];
const WORDS: [&str; 8] = ["AK-47 | Redline", "awp", "AWP", "Straße", "caf", "Dragon", "★ Bear", "100% _*"];
/// Letters with their marks. Only whole ones are looked for.
const LETTERS: [&str; 31] = [
    "a", "B", "b", "A", "-", " ", "|", "7", "ß", "ss", "SS", "ẞ", "é", "e\u{301}", "É", "e", "Σ", "σ", "ς", "Ä",
    "A\u{308}", "İ", "i", "I", "i\u{307}", "™", "龍", "Ａ", "ａ", "&+", "\u{a0}",
];
const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

pub(super) struct Draw {
    pub(super) random: Rng,
    /// All changes that were drawn.
    drawn: Oracle,
    /// How many orders there are, and how many there were before the latest changes.
    orders: u128,
    orders_before: u128,
    began: Millis,
    /// How large the market is.
    pub(super) scale: u32,
}

impl Draw {
    pub(super) fn new(seed: u64, began: Millis, scale: u32) -> Self {
        Self { random: Rng::with_seed(seed), drawn: Oracle::default(), orders: 0, orders_before: 0, began, scale }
    }

    /// Returns whether something happens that happens with this chance.
    pub(super) fn chance(&mut self, percent: u32) -> bool {
        self.random.u32(0..100) < percent
    }

    fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.random.usize(0..values.len())]
    }

    fn maybe<T>(&mut self, percent: u32, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.chance(percent).then(|| value(self))
    }

    /// Draws changes, in any order. Some are not newer than one of an earlier call, and differ from it.
    pub(super) fn changes(&mut self, count: usize, now: Millis) -> Vec<Rc<Change>> {
        self.orders_before = self.orders;
        let (mut newer, mut changes) = (BTreeSet::new(), Vec::new());
        while changes.len() < count {
            let mut change = self.change(now);
            let known = self.newest(&change.key).filter(|_| !newer.contains(&change.key));
            if let Some(known) = known.filter(|_| self.chance(25)) {
                let oldest = if matches!(change.key, Key::Quote(..)) { known - DAY } else { 0 };
                change.version = if self.chance(40) { known } else { self.random.i64(oldest..=known) };
                if let Record::Quote(quote) = &mut change.record {
                    quote.observed_at = Millis(change.version);
                }
            } else {
                newer.insert(change.key.clone());
            }
            let change = Rc::new(change);
            self.drawn.apply(&change);
            changes.push(change);
        }
        self.random.shuffle(&mut changes);
        changes
    }

    fn newest(&self, key: &Key) -> Option<i64> {
        self.drawn.newest(key).map(|change| change.version)
    }

    /// Returns an order with another account or time than it was created with, if there was an order before the latest
    /// changes.
    pub(super) fn contradiction(&mut self, now: Millis) -> Option<Change> {
        let number = self.random.u128(0..=self.orders_before);
        let (key, record) = self.order(number, now);
        let (version, Record::Order(account, mut order)) = (self.newest(&key)? + 1, record) else { return None };
        let is_other_account = self.random.bool();
        let account = if is_other_account { Uuid::from_u128(account.as_u128() ^ 3) } else { account };
        order.created_at.0 -= i64::from(!is_other_account);
        Some(Change { key, version, record: Record::Order(account, order) })
    }

    /// Draws a change that is newer than all before, with any content.
    fn change(&mut self, now: Millis) -> Change {
        let (key, record) = match self.random.u32(0..100) {
            0..25 => self.item(),
            25..60 => self.listing(now),
            60..66 => self.marketplace(),
            66..80 => return self.quote(now),
            80..96 => self.any_order(now),
            _ => self.balance(),
        };
        let version = self.newest(&key).map_or(0, |newest| newest + 1) + self.random.i64(0..3);
        Change { key, version, record }
    }

    fn item(&mut self) -> (Key, Record) {
        let id = self.item_id();
        let key = Key::Item(id.clone());
        if self.chance(15) {
            return (key, Record::Item(None));
        }
        let variants = if self.chance(4) { 26 } else { self.random.usize(0..5) };
        let item = Item {
            kind: self.one_of(&KINDS),
            name: self.maybe(85, Self::name),
            slug: self.maybe(50, |draw| format!("slug \"{}\"", draw.random.u8(0..3))),
            image: self.maybe(50, |draw| format!("https://img.example/{}?a=b&c", draw.random.u8(0..3))),
            variants: (0..variants).map(|_| self.variant()).collect(),
            id,
        };
        (key, Record::Item(Some(item)))
    }

    fn variant(&mut self) -> Variant {
        Variant {
            variant_id: self.variant_id(),
            wear: self.maybe(50, |_| "Field-Tested"),
            stattrak: self.random.bool(),
            market_hash_name: self.maybe(50, Self::name),
        }
    }

    fn item_id(&mut self) -> String {
        format!("item~{}._-Z", self.random.u32(0..ITEMS * self.scale))
    }

    fn variant_id(&mut self) -> Uuid {
        Uuid::from_u128(0xbeef_0000 + u128::from(self.random.u32(0..VARIANTS * self.scale)))
    }

    fn listing_id(&mut self) -> Uuid {
        Uuid::from_u128(0xfeed_0000 + u128::from(self.random.u32(0..LISTINGS * self.scale)))
    }

    fn name(&mut self) -> String {
        let mut name = self.one_of(&WORDS).to_owned();
        for _ in 0..self.random.usize(0..4) {
            name += self.one_of(&LETTERS);
        }
        name
    }

    fn price(&mut self) -> Cents {
        if self.chance(60) { Cents(self.one_of(&PRICES)) } else { Cents(self.random.u64(0..5_000)) }
    }

    fn listing(&mut self, now: Millis) -> (Key, Record) {
        let id = self.listing_id();
        let listing = Listing {
            id,
            id8: format!("{:08x}", self.random.u32(..)),
            price_usd: self.price(),
            kind: self.one_of(&["bot", "p2p"]),
            is_auction: self.random.bool(),
            created_at: Millis(now.0 / HOUR * HOUR - self.one_of(&[0, 0, 1, HOUR, 30 * DAY, -HOUR])),
            item_id: self.maybe(80, Self::item_id),
            variant_id: self.maybe(80, Self::variant_id),
            market_hash_name: self.maybe(50, Self::name),
        };
        let status = self.one_of(&["active", "active", "active", "sold", "cancelled"]);
        (Key::Listing(id), Record::Listing(listing, status))
    }

    fn marketplace_key(&mut self) -> String {
        format!("shop{}.~", self.random.usize(0..MARKETPLACES))
    }

    fn marketplace(&mut self) -> (Key, Record) {
        let key = self.marketplace_key();
        let marketplace = Marketplace {
            name: self.name(),
            link: format!("https://{}.example", self.random.u8(0..3)),
            kind: self.one_of(&["p2p", "bot"]),
            enabled: self.chance(70),
            key: key.clone(),
        };
        (Key::Marketplace(key), Record::Marketplace(marketplace))
    }

    fn quote(&mut self, now: Millis) -> Change {
        let (variant_id, marketplace) = (self.variant_id(), self.marketplace_key());
        let key = Key::Quote(variant_id, marketplace.clone());
        let ago = self.one_of(&[0, MINUTE, HOUR, DAY - MINUTE, DAY, DAY + MINUTE, -4 * MINUTE]);
        let least = self.newest(&key).map_or(i64::MIN, |newest| newest + 1);
        let observed_at = Millis(least.max(now.0 / MINUTE * MINUTE - ago));
        let around = self.price().0;
        let asks = (0..self.random.usize(0..6)).map(|_| self.ask(around)).collect();
        let record = Record::Quote(Quote { variant_id, marketplace, asks, observed_at });
        Change { key, version: observed_at.0, record }
    }

    fn ask(&mut self, around: u64) -> Cents {
        let near = around.saturating_sub(1)..=around.saturating_add(2).min(MOST_CENTS);
        Cents(if self.chance(70) { self.random.u64(near) } else { self.price().0 })
    }

    fn any_order(&mut self, now: Millis) -> (Key, Record) {
        let is_new = self.orders == 0 || self.chance(70);
        self.orders += u128::from(is_new);
        let number = if is_new { self.orders } else { self.random.u128(1..=self.orders) };
        self.order(number, now)
    }

    fn order(&mut self, number: u128, now: Millis) -> (Key, Record) {
        // Later orders do not have greater ids.
        let id = Uuid::from_u128(number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
        // Its account and its time never change. Most orders share few seconds of one hour.
        let account = ACCOUNTS[usize::from(number.is_multiple_of(4))];
        let nth = number as i64;
        let age = if nth % 3 == 0 { nth * 7 % 11 * 17 * DAY + nth % 2 } else { 8 * DAY + nth * 5 % 7 * 1_000 };
        let line = |draw: &mut Self| OrderLine {
            listing_id: draw.listing_id(),
            price_usd: draw.price(),
            item_id: draw.maybe(70, Self::item_id),
        };
        let order = Order {
            id,
            status: self.one_of(&["awaiting_delivery", "delivered", "refunded", "new_1"]),
            source: self.one_of(&["checkout", "auction", "offer", "buy_order", "trade"]),
            total_usd: self.price(),
            created_at: Millis(self.began.0 - age),
            delivered_at: self.maybe(50, |draw| Millis(now.0 - draw.random.i64(0..DAY))),
            items: (0..self.random.usize(0..3)).map(|_| line(self)).collect(),
        };
        (Key::Order(id), Record::Order(account, order))
    }

    fn balance(&mut self) -> (Key, Record) {
        let account = self.one_of(&ACCOUNTS);
        let [store, trade] = [(); 2].map(|()| self.price().0 / 2);
        let [withdrawable_usd, held_usd, escrow_usd] = [(); 3].map(|()| self.price());
        let (store_usd, trade_usd, available_usd) = (Cents(store), Cents(trade), Cents(store + trade));
        let balance = Balance { available_usd, store_usd, trade_usd, withdrawable_usd, held_usd, escrow_usd };
        (Key::Balance(account), Record::Balance(balance))
    }

    /// Draws a request. `me` has the answers of `/me`.
    pub(super) fn question(&mut self, me: &[String; 2]) -> Question {
        let account = self.random.usize(0..ACCOUNTS.len());
        match self.random.u32(0..100) {
            0..30 => Question::Catalog {
                q: self.maybe(50, Self::part_of_a_name),
                kind: self.maybe(30, |draw| draw.one_of(&KINDS)),
                paging: self.paging(),
            },
            30..60 => self.listings(),
            60..70 => Question::Item { id: self.item_id(), includes_prices: self.random.bool() },
            70..80 => Question::Prices(self.variant_id()),
            80..83 => Question::Marketplaces,
            83..94 => Question::Orders(ACCOUNTS[account], self.paging()),
            94..98 => Question::Balance(ACCOUNTS[account]),
            _ => Question::Me(ACCOUNTS[account], me[account].clone()),
        }
    }

    fn listings(&mut self) -> Question {
        let [one, other] = [(); 2].map(|()| self.price());
        Question::Listings {
            item_id: self.maybe(25, Self::item_id),
            variant_id: self.maybe(20, Self::variant_id),
            min_price: self.maybe(30, |_| one.min(other)),
            max_price: self.maybe(30, |_| one.max(other)),
            sort: self.maybe(70, |draw| draw.one_of(&["newest", "price_asc", "price_desc"])),
            paging: self.paging(),
        }
    }

    fn paging(&mut self) -> Paging {
        Paging {
            page: if self.random.bool() { 1 } else { self.random.usize(1..12 * self.scale as usize) },
            page_size: self.maybe(80, |draw| draw.one_of(&[1, 2, 3, 7, 20, 50, 100])),
        }
    }

    fn part_of_a_name(&mut self) -> String {
        let word: Vec<char> = self.one_of(&WORDS).chars().collect();
        let (from, to) = (self.random.usize(0..=word.len()), self.random.usize(0..=word.len()));
        let part: String = word[from.min(to)..from.max(to)].iter().collect();
        match self.random.u8(0..4) {
            0 => part.to_uppercase(),
            1 => part + self.one_of(&LETTERS),
            2 => self.one_of(&LETTERS).to_owned() + self.one_of(&LETTERS),
            _ => part.to_lowercase(),
        }
    }
}
