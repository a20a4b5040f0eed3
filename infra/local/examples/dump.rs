use local::demo::{LargeMarket, messages, placed_uuid, variant_id};
fn main() {
    let now = "2026-11-20T10:00:00Z".parse().unwrap();
    for message in messages(now) {
        println!("{message:?}");
    }
    for size in [500, 20_000] {
        let market = LargeMarket::new(size, now);
        for n in 0..size {
            println!("{:?} {:?} {:?}", market.item(n), market.listing(n), market.item_id(n));
        }
    }
    println!("{:?} {:?}", variant_id(3, 4), placed_uuid(7, 3, 10));
}
