//! Child processes: this same program, started with a hidden subcommand. Nothing else has to be built or found, and
//! what is measured shares neither CPU time nor memory with the rest.

use tokio::io::AsyncReadExt;
use tokio::process::Command;

use crate::output::text;

/// Returns a command that starts this program again with a subcommand. The process is killed when it is dropped.
pub(crate) fn child_command(subcommand: &str) -> Result<Command, String> {
    let mut command = Command::new(std::env::current_exe().map_err(text)?);
    command.arg(subcommand).kill_on_drop(true);
    Ok(command)
}

/// Waits until the parent ends, however that happens. The parent holds the other end of our standard input.
pub(crate) async fn parent_ended() -> Result<(), String> {
    tokio::io::stdin().read_to_end(&mut Vec::new()).await.map(drop).map_err(text)
}
