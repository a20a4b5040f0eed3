//! What webhooks cost: from an event in the feed to a POST at a receiver.

mod load;
pub(crate) mod receiver;
mod stack;

use std::num::NonZeroU32;

use crate::cli::WebhookOptions;
use crate::cpu::Started;
use crate::percentiles::Percentiles;
use load::{account, burst, steady};
use receiver::Receiver;
use stack::Stack;

pub(crate) async fn run(options: &WebhookOptions) -> Result<(), String> {
    let stack = Stack::start().await?;
    let receiver = Receiver::start().await?;
    for number in 0..options.endpoints {
        stack.add(account(number), format!("{}/{number}", receiver.url)).await?;
    }
    let running = stack.functions(NonZeroU32::MIN).await?;
    burst(&stack, 1000, 0..options.endpoints).await?;
    receiver.arrived(1000).await?;
    receiver.take().await?;
    stack.meter.take();
    for _ in 0..3 {
        let (aws, sink) = (stack.aws.cpu(), receiver.cpu());
        let started = Started::now();
        burst(&stack, options.events, 0..options.endpoints).await?;
        let sent = started.spent();
        receiver.arrived(options.events).await?;
        let spent = started.spent();
        let n = options.events as f64;
        println!(
            "{:.0}/s  (sent in {:.2?}) service {:.0} us, stores {:.0} us, receiver {:.0} us",
            n / spent.wall.as_secs_f64(), sent.wall,
            spent.cpu.as_secs_f64() * 1e6 / n,
            (stack.aws.cpu() - aws).as_secs_f64() * 1e6 / n,
            (receiver.cpu() - sink).as_secs_f64() * 1e6 / n
        );
        receiver.take().await?;
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        println!("{:?}", stack.meter.take());
    }
    steady(&stack, 2000, 200, 0..options.endpoints).await?;
    receiver.arrived(2000).await?;
    let arrived = receiver.take().await?;
    let millis = arrived.millis.iter().map(|ms| std::time::Duration::from_millis(ms.unsigned_abs())).collect();
    println!("{:?}", Percentiles::of(millis));
    drop(running);
    Ok(())
}
