//! Processes of our own: this very program, told by a hidden subcommand to be something else. Nothing else
//! has to be built or found, and what is measured shares neither CPU time nor memory with the rest.

use tokio::io::AsyncReadExt;
use tokio::process::Command;

use crate::output::text;

/// This program again, as one of its subcommands; it is killed when nobody waits for it any more.
pub(crate) fn itself(subcommand: &str) -> Result<Command, String> {
    let mut command = Command::new(std::env::current_exe().map_err(text)?);
    command.arg(subcommand).kill_on_drop(true);
    Ok(command)
}

/// Waits until the parent ends, however it does: standard input is a pipe that it holds.
pub(crate) async fn parent_ended() -> Result<(), String> {
    tokio::io::stdin().read_to_end(&mut Vec::new()).await.map(drop).map_err(text)
}
