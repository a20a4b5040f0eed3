//! A thread that reads and parses the next chunk while the last one is being written.

use std::io::{self, BufReader, Read};
use std::sync::Arc;
use std::thread::JoinHandle;

use shared::clock::Clock;
use tokio::sync::mpsc::{self, Receiver, Sender};

use super::chunks::{Chunk, Chunks};

const BUFFER_BYTES: usize = 256 * 1_024;

/// Chunks from the thread. Dropping it leaves the thread to end with the process: it may hang in a read
/// of standard input, for which nobody should wait.
pub(super) struct Reader {
    chunks: Receiver<io::Result<Chunk>>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    pub(super) fn start(stream: Box<dyn Read + Send>, clock: Arc<dyn Clock>) -> Self {
        let (sender, chunks) = mpsc::channel(1);
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

#[cfg(test)]
mod tests {
    use super::*;
    use shared::clock::SystemClock;

    /// A stream that breaks its reader.
    struct Breaking;

    impl Read for Breaking {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            panic!("a fault in the reading thread")
        }
    }

    #[tokio::test]
    async fn a_thread_that_breaks_down_is_not_the_end_of_the_file() {
        let clock = Arc::new(SystemClock::new());
        let mut reader = Reader::start(Box::new(&b"nonsense\n"[..]), clock.clone());
        assert_eq!(reader.next().await.unwrap().unwrap().lines, 1);
        assert!(reader.next().await.unwrap().is_none());
        assert!(Reader::start(Box::new(Breaking), clock).next().await.is_err());
    }
}
