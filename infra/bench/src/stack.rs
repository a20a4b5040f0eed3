//! The stack that is measured: an AWS side in a process of its own, so that its CPU time and memory do not count as ours,
//! and what is stored there.

use std::ffi::OsStr;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use admin::keys::NewKey;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use common::aws::{Environment, Patience};
use common::clock::SystemClock;
use common::records::{PublicItem, PublicListing};
use common::resources::{Resources, Table};
use common::scope::{Scope, Tier};
use common::timestamp::Timestamp;
use feed::{Applier, ApplyOutcome, Message};
use local::demo::LargeMarket;
use local::environment::{ACCOUNT_ID, REGION, Variables};
use local::seed::StackAdmin;
use market::{Log, Manifest, Market, ObjectRef};
use replica::base::{Columnar, Compaction, RebuildLimits, object_hash, pack_part};
use replica::objects::Objects;
use serde::de::DeserializeOwned;
use terminal::Bar;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use uuid::Uuid;

use crate::cli::ReplicaStream;
use crate::figures::text;
use crate::process::child_time;

/// The name of the subcommand.
const SUBCOMMAND: &str = "aws-side";
/// The number of items, and of listings, that are applied at a time.
const CHUNK_RECORDS: u64 = 2_000;
/// The number of records that are packed together, which is the most that a part may have.
const PART_RECORDS: usize = 131_072;

/// Starts this program again with a subcommand, so that nothing else has to be built or found. Returns the process, which
/// is killed when it is dropped, and the lines that it prints.
pub(crate) fn start_child(
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Result<(Child, Lines<BufReader<ChildStdout>>), String> {
    let mut command = child_command(arguments)?;
    let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(text)?;
    let stdout = process.stdout.take().ok_or("a child has no standard output")?;
    Ok((process, BufReader::new(stdout).lines()))
}

fn child_command(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<Command, String> {
    let mut command = Command::new(std::env::current_exe().map_err(text)?);
    command.args(arguments).kill_on_drop(true);
    Ok(command)
}

/// Waits until the parent ends, however that happens. The parent holds the other end of our standard input.
pub(crate) async fn parent_ended() -> Result<(), String> {
    tokio::io::stdin().read_to_end(&mut Vec::new()).await.map(drop).map_err(text)
}

/// A running AWS side with the tables and queues of a stack. It stops when this is dropped.
pub(crate) struct AwsProcess {
    /// The variables by which functions find it.
    pub(crate) variables: Variables,
    process: Child,
}

impl AwsProcess {
    /// Starts an empty AWS side on a free port.
    pub(crate) async fn start() -> Result<Self, String> {
        let (process, mut lines) = start_child([SUBCOMMAND])?;
        let line = lines.next_line().await.map_err(text)?.ok_or("the AWS side did not start")?;
        Ok(Self { variables: Variables::new(&line), process })
    }

    /// Runs this program with a subcommand against this AWS side, in a process of its own. Returns the document that it
    /// prints.
    pub(crate) async fn run_child<D: DeserializeOwned>(&self, arguments: &[&str]) -> Result<D, String> {
        let output = child_command(arguments)?.env_clear().envs(self.variables.iter()).output().await.map_err(text)?;
        serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("{arguments:?}: {error}: {}", String::from_utf8_lossy(&output.stderr)))
    }

    /// Returns its CPU time so far.
    pub(crate) fn cpu(&self) -> Duration {
        child_time(&self.process)
    }

    /// Returns the environment of those who use it.
    pub(crate) fn environment(&self) -> Result<Environment, String> {
        Environment::read(&|name| self.variables.get(name)).map_err(text)
    }

    /// Returns the administration of its stack.
    pub(crate) fn admin(&self) -> Result<StackAdmin, String> {
        StackAdmin::new(&self.variables, Arc::new(SystemClock::new()))
    }
}

/// Runs as the AWS side until standard input ends.
pub(crate) async fn run() -> Result<(), String> {
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let aws = local::aws::AwsSide::start(any_port, None).await.map_err(text)?;
    StackAdmin::new(&Variables::new(&aws.endpoint_url), Arc::new(SystemClock::new()))?.set_up(None).await?;
    println!("{}", aws.endpoint_url);
    parent_ended().await
}

/// Creates a key of the largest tier with every scope, for a user of its own. Returns it as a header's value.
pub(crate) async fn authorization(admin: &StackAdmin) -> Result<String, String> {
    let scopes = Scope::ALL.into_iter().collect();
    let user_id = Uuid::new_v4().into();
    let new = NewKey { user_id, name: None, tier: Tier::Business, limit_override: None, scopes, expires_at: None };
    let (key, _) = admin.keys().create(new).await.map_err(text)?;
    Ok(format!("Bearer {}", key.reveal()))
}

/// Stores every item and listing of a market the way `marketctl import` does. Each of them must change something.
pub(crate) async fn fill(admin: &StackAdmin, market: &LargeMarket, bar: &Bar) -> Result<(), String> {
    let (clock, mut applier) = (SystemClock::new(), Applier::new(admin.stores()));
    for start in (0..market.size()).step_by(CHUNK_RECORDS as usize) {
        let numbers = start..(start + CHUNK_RECORDS).min(market.size());
        let items = numbers.clone().filter_map(|number| Some(Message::Item(market.item(number)?, 1)));
        let listings = numbers.filter_map(|number| Some(Message::Listing(market.listing(number)?, 1)));
        let messages: Vec<_> = items.chain(listings).map(|message| ((), message)).collect();
        let count = messages.len() as u64;
        for ((), outcome) in applier.apply(messages, &clock).await {
            match outcome {
                Ok(ApplyOutcome::Changed) => {}
                other => return Err(format!("a message was not applied: {other:?}")),
            }
        }
        bar.advance(count);
    }
    Ok(())
}

/// Sends messages to a queue, at most ten of them.
pub(crate) async fn send(sqs: &aws_sdk_sqs::Client, queue: &str, messages: &[String]) -> Result<(), String> {
    let entries = messages.iter().zip(0..).map(|(message, number)| {
        let entry = SendMessageBatchRequestEntry::builder().id(number.to_string()).message_body(message);
        entry.build().map_err(text)
    });
    let entries = entries.collect::<Result<Vec<_>, _>>()?;
    let sent = sqs.send_message_batch().queue_url(queue).set_entries(Some(entries)).send().await;
    match sent.map_err(|error| common::store::explain(&error))?.failed.as_slice() {
        [] => Ok(()),
        [failed, ..] => Err(format!("a message was not sent: {failed:?}")),
    }
}

/// Where a stream of the default stack is stored.
struct StreamStore<R> {
    log: Log<R>,
    objects: Objects,
}

impl<R: Columnar> StreamStore<R> {
    fn open(environment: &Environment) -> Self {
        let (resources, patience) = (Resources::new(Resources::DEFAULT_STACK), Patience::Bulk);
        let market = Market::new(environment.dynamodb(patience), resources.table(Table::Market));
        let bucket = resources.base_bucket(ACCOUNT_ID, REGION);
        let objects = Objects::new(replica::objects::client(environment, patience), bucket, patience);
        Self { log: Log::new(market), objects }
    }
}

/// Packs a stream as `compact` does.
pub(crate) async fn pack<R: Columnar>(environment: &Environment) -> Result<(), String> {
    let StreamStore { log, objects } = StreamStore::<R>::open(environment);
    let compaction = Compaction::new(log, objects, Arc::new(SystemClock::new()));
    compaction.with_limits(RebuildLimits::at_once()).run().await.map(drop).map_err(text)
}

/// Writes the base of a stream with all of a market's records. Large markets are written as a base alone, because the
/// embedded tables take too long to fill. A base is enough for starts and questions.
pub(crate) async fn write_base(
    environment: &Environment,
    market: &LargeMarket,
    stream: ReplicaStream,
) -> Result<(), String> {
    let (numbers, now) = (0..market.size(), market.now());
    match stream {
        ReplicaStream::Listings => {
            write_records::<PublicListing>(environment, numbers.filter_map(|number| market.listing(number)), now).await
        }
        ReplicaStream::Catalog => {
            let items = numbers.filter_map(|number| Some(market.item(number)?.item));
            write_records::<PublicItem>(environment, items, now).await
        }
    }
}

async fn write_records<R: Columnar>(
    environment: &Environment,
    records: impl Iterator<Item = R>,
    now: Timestamp,
) -> Result<(), String> {
    let store = StreamStore::<R>::open(environment);
    let standing = store.log.standing().await.map_err(text)?;
    let (generation, mut parts) = (Uuid::new_v4(), Vec::new());
    let mut records: Vec<R> = records.collect();
    records.sort_unstable_by(R::base_order);
    for group in records.chunks(PART_RECORDS) {
        for packed in pack_part(group).map_err(text)? {
            let key = format!("{}/{generation}/{}", R::STREAM, parts.len());
            let hash = object_hash(&packed);
            store.objects.put(&key, packed.into()).await.map_err(text)?;
            parts.push(ObjectRef { key, hash });
        }
    }
    let manifest = Manifest {
        generation,
        base: standing.head,
        end: standing.head,
        records: records.len() as u64,
        written_at: now,
        scanned_at: now,
        parts,
        deltas: Vec::new(),
    };
    let is_put = store.log.put_manifest(&manifest, &standing).await.map_err(text)?;
    if is_put { Ok(()) } else { Err("somebody else has written a base".to_owned()) }
}
