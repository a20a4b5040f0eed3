//! Reads the next chunk in a thread of its own while the last one is being worked on.

use std::io::{self, BufReader, Read};
use std::thread::JoinHandle;

use tokio::sync::mpsc::{self, Receiver, Sender};

use super::chunks::{Chunk, Chunks, Parse};

const BUFFER_BYTES: usize = 256 * 1_024;

/// Receives the chunks from the reading thread. Dropping it does not wait for the thread, which may be blocked in
/// a read of standard input; the thread then ends with the process.
pub(crate) struct Reader<M> {
    chunks: Receiver<io::Result<Chunk<M>>>,
    thread: Option<JoinHandle<()>>,
}

impl<M: Send + 'static> Reader<M> {
    /// Starts a thread that reads lines of at most `max_bytes` bytes and parses each into a message.
    pub(crate) fn start(stream: Box<dyn Read + Send>, max_bytes: usize, parse: Parse<M>) -> Self {
        let (sender, chunks) = mpsc::channel(1);
        let buffered = BufReader::with_capacity(BUFFER_BYTES, stream);
        let thread = std::thread::spawn(move || hand_over(Chunks::new(buffered, max_bytes, parse), &sender));
        Self { chunks, thread: Some(thread) }
    }

    /// Returns the next chunk, or `None` after the last.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Chunk<M>>> {
        match self.chunks.recv().await {
            Some(chunk) => chunk.map(Some),
            // If the thread panicked, that must not look like the end of the file.
            None => match self.thread.take().map(JoinHandle::join) {
                Some(Err(_)) => Err(io::Error::other("the thread that reads the input panicked")),
                _ => Ok(None),
            },
        }
    }
}

fn hand_over<M>(chunks: impl Iterator<Item = io::Result<Chunk<M>>>, sender: &Sender<io::Result<Chunk<M>>>) {
    for chunk in chunks {
        let last = chunk.is_err();
        if sender.blocking_send(chunk).is_err() || last {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream that makes its reader panic.
    struct Breaking;

    impl Read for Breaking {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            panic!("a fault in the reading thread")
        }
    }

    #[tokio::test]
    async fn a_thread_that_breaks_down_is_not_the_end_of_the_file() {
        let read = |stream: Box<dyn Read + Send>| Reader::start(stream, 100, Box::new(|line| Ok(line.len())));
        let mut reader = read(Box::new(&b"nonsense\n"[..]));
        assert_eq!(reader.next().await.unwrap().unwrap().lines, 1);
        assert!(reader.next().await.unwrap().is_none());
        assert!(read(Box::new(Breaking)).next().await.is_err());
    }
}
