//! A thread that reads and parses the next chunk while the last one is being written.

use std::io::{self, BufReader, Read};
use std::thread::JoinHandle;

use shared::clock::Clock;
use std::sync::Arc;
use tokio::sync::mpsc::{self, Receiver, Sender};

use super::chunks::{Chunk, Chunks};
use crate::session::Session;

const BUFFER_BYTES: usize = 256 * 1_024;

/// Chunks from the thread. Dropping it leaves the thread to end with the process: it may hang in a read
/// of standard input, for which nobody should wait.
pub(super) struct Reader {
    chunks: Receiver<io::Result<Chunk>>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    pub(super) fn start(stream: Box<dyn Read + Send>, session: &Session) -> Self {
        let (sender, chunks) = mpsc::channel(1);
        let clock = Arc::clone(&session.clock);
        let thread = std::thread::spawn(move || read(stream, clock, &sender));
        Self { chunks, thread: Some(thread) }
    }

    /// The next chunk; none after the last.
    pub(super) async fn next(&mut self) -> io::Result<Option<Chunk>> {
        match self.chunks.recv().await {
            Some(chunk) => chunk.map(Some),
            // A thread that broke down must not pass for the end of the file.
            None => match self.thread.take().map(JoinHandle::join) {
                Some(Err(_)) => Err(io::Error::other("the reading thread broke down")),
                _ => Ok(None),
            },
        }
    }
}

fn read(stream: Box<dyn Read + Send>, clock: Arc<dyn Clock>, sender: &Sender<io::Result<Chunk>>) {
    for chunk in Chunks::of(BufReader::with_capacity(BUFFER_BYTES, stream), clock) {
        let last = chunk.is_err();
        if sender.blocking_send(chunk).is_err() || last {
            break;
        }
    }
}
