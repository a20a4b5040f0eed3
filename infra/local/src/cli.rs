//! The command line.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Parser;

/// The whole marketplace API on one machine: no AWS account, no Docker, no JVM.
#[derive(Clone, Debug, Parser)]
#[command(name = "local", version)]
#[allow(clippy::struct_excessive_bools, reason = "flags of a command line are booleans")]
pub struct Options {
    /// Where to serve the API; port 0 picks a free one.
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    pub listen: SocketAddr,
    /// Where to serve DynamoDB, SQS, Secrets Manager and S3; port 0 picks a free one.
    #[arg(long, default_value = "127.0.0.1:4566", value_name = "ADDRESS")]
    pub aws_listen: SocketAddr,
    /// Keep the tables and the objects in this folder.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["memory", "aws_endpoint"])]
    pub data: Option<PathBuf>,
    /// Keep the tables and the objects in memory; the default.
    #[arg(long, conflicts_with = "aws_endpoint")]
    pub memory: bool,
    /// Fill an empty store with the demo market; the default.
    #[arg(long, conflicts_with_all = ["empty", "aws_endpoint"])]
    pub demo: bool,
    /// Create neither the demo market nor keys.
    #[arg(long)]
    pub empty: bool,
    /// Serve only the AWS side: DynamoDB, SQS, Secrets Manager and S3.
    #[arg(long, conflicts_with = "aws_endpoint")]
    pub aws_only: bool,
    /// Serve only the functions, against this AWS endpoint.
    #[arg(long, value_name = "URL")]
    pub aws_endpoint: Option<String>,
    /// Delay every DynamoDB call by this many milliseconds, to see round trips.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub store_latency_ms: u64,
    /// Give DynamoDB and S3 the throughput and the latencies of AWS, and print what they refuse.
    #[arg(long, conflicts_with = "aws_endpoint")]
    pub aws_limits: bool,
    /// Set this instance's clock wrong by this many seconds, to see that nothing breaks.
    #[arg(long, default_value_t = 0, value_name = "N", allow_negative_numbers = true)]
    pub clock_offset_s: i64,
    /// Divide the waiting times of webhook retries by this number and round them up to whole seconds.
    #[arg(long, default_value_t = NonZeroU32::MIN, value_name = "N")]
    pub time_scale: NonZeroU32,
    /// Allow webhook endpoints on this machine (`127.0.0.0/8`, `::1`, `localhost`).
    #[arg(long)]
    pub allow_loopback_webhooks: bool,
    /// Print one line of JSON once ready, instead of text.
    #[arg(long)]
    pub json: bool,
}
