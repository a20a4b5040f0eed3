//! The head of an answer, as receivers write it.
//!
//! The status line alone decides the outcome of an attempt. Header lines that break the rules of HTTP are passed over:
//! all that they change is that the connection is not used again.

use httparse::{EMPTY_HEADER, Status};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::error::{PostError, TlsFailure};

/// The most bytes that the head of an answer and all informational answers before it may have together (specification
/// 6.7.3).
const MAX_HEAD_BYTES: usize = 32 * 1_024;
/// The longest size line of a chunk, in bytes. A longer one does not tell where the body ends.
const MAX_SIZE_LINE: usize = 256;
/// How the status line of an answer begins (RFC 9112, section 4). The minor version does not matter.
const PROTOCOL: &[u8] = b"HTTP/1.";

/// The bytes of an answer up to the end of its head, and how far they are understood.
#[derive(Default)]
pub(super) struct Head {
    bytes: Vec<u8>,
    /// Where the head that is being read begins: that of the answer, or of an informational answer before it.
    start: usize,
    /// Where the first line begins whose end was not read yet.
    line: usize,
    /// How far that line has no end.
    searched: usize,
    /// The status of the answer whose head is being read, once its status line is.
    pub(super) status: Option<u16>,
}

impl Head {
    /// Reads to the end of the answer's head, past informational answers. Returns the answer's status.
    ///
    /// # Errors
    /// Fails if the connection ends before that, if what comes is not HTTP/1, or if it is longer than
    /// [`MAX_HEAD_BYTES`].
    pub(super) async fn read(&mut self, reader: &mut (impl AsyncRead + Unpin)) -> Result<u16, PostError> {
        loop {
            if let Some(status) = self.advance()? {
                return Ok(status);
            }
            let ended = match read_some(reader, &mut self.bytes).await {
                Ok(1..) => continue,
                Ok(0) => None,
                Err(error) => TlsFailure::from_io(&error).map(PostError::Tls),
            };
            return Err(self.status.map(PostError::HeadIncomplete).or(ended).unwrap_or(PostError::Closed));
        }
    }

    /// Reads the lines that are complete. Returns the status once the answer's head is.
    fn advance(&mut self) -> Result<Option<u16>, PostError> {
        while let Some(length) = self.bytes[self.searched..].iter().position(|&byte| byte == b'\n') {
            let (start, end) = (self.line, self.searched + length + 1);
            (self.line, self.searched) = (end, end);
            let line = &self.bytes[start..end];
            let is_empty = matches!(line, b"\n" | b"\r\n");
            match self.status {
                None if is_empty => {}
                None => {
                    self.start = start;
                    self.status = Some(read_status(line).ok_or(PostError::NotHttp)?);
                }
                Some(status) if is_empty => {
                    if end > MAX_HEAD_BYTES {
                        return Err(PostError::HeadTooLong(self.status));
                    }
                    if status == 101 || status >= 200 {
                        return Ok(Some(status));
                    }
                    self.status = None;
                }
                Some(_) => {}
            }
        }
        self.searched = self.bytes.len();
        if self.bytes.len() > MAX_HEAD_BYTES {
            return Err(PostError::HeadTooLong(self.status));
        }
        let line = &self.bytes[self.line..];
        let unfinished = line.strip_prefix(b"\r").unwrap_or(line);
        let known = unfinished.len().min(PROTOCOL.len());
        if self.status.is_none() && unfinished[..known] != PROTOCOL[..known] {
            return Err(PostError::NotHttp);
        }
        Ok(None)
    }

    /// Returns how the answer's body ends, and what was read of it. To be called after [`Self::read`].
    pub(super) fn into_framing_and_body(mut self) -> (Framing, Vec<u8>) {
        let body = self.bytes.split_off(self.line);
        (Framing::read(&self.bytes[self.start..]), body)
    }
}

/// Reads the status of a status line. Its reason phrase may be anything, or missing.
fn read_status(line: &[u8]) -> Option<u16> {
    let [b'0'..=b'9', rest @ ..] = line.strip_prefix(PROTOCOL)? else { return None };
    let code = rest.trim_ascii_start();
    let digits = code.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits != 3 || code.len() == rest.len() {
        return None;
    }
    let status = str::from_utf8(&code[..3]).ok()?.parse().ok()?;
    (status >= 100).then_some(status)
}

/// Reads what has arrived, and waits for it if nothing has. Returns 0 at the end.
pub(super) async fn read_some(reader: &mut (impl AsyncRead + Unpin), bytes: &mut Vec<u8>) -> std::io::Result<usize> {
    bytes.reserve(4 * 1_024);
    reader.read_buf(bytes).await
}

/// What a head says about the rest of the answer (RFC 9112, section 6.3).
pub(super) struct Framing {
    pub(super) end: BodyEnd,
    /// Whether the connection may stay open after the answer. It does not if the receiver says so.
    pub(super) may_stay_open: bool,
}

/// Where a body ends, from the byte on that comes next.
#[derive(Clone, Copy)]
pub(super) enum BodyEnd {
    /// After this many bytes.
    After(u64),
    /// After further chunks (RFC 9112, section 7.1): the size of one, this much of its data, or its line end comes next.
    ChunkSize,
    ChunkData(u64),
    ChunkEnd,
    /// After the empty line that follows the last chunk.
    LastLine,
    /// With the connection, or the receiver contradicts itself.
    Unknown,
}

impl Framing {
    /// Reads a head. If it is not by the book, nothing in it is believed.
    fn read(head: &[u8]) -> Self {
        Self::by_the_book(head).unwrap_or(Self { end: BodyEnd::Unknown, may_stay_open: true })
    }

    fn by_the_book(head: &[u8]) -> Option<Self> {
        let mut headers = [EMPTY_HEADER; 100];
        let mut parsed = httparse::Response::new(&mut headers);
        let Ok(Status::Complete(_)) = parsed.parse(head) else { return None };
        let is_current = parsed.version == Some(1);
        let values = |name: &'static str| {
            let named = parsed.headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
            named.map(|header| header.value)
        };
        let (lengths, codings): (Vec<_>, Vec<_>) =
            (values("content-length").collect(), values("transfer-encoding").collect());
        let end = match (&lengths[..], &codings[..]) {
            _ if matches!(parsed.code, Some(204 | 304)) => BodyEnd::After(0),
            ([length], []) => read_length(length).map_or(BodyEnd::Unknown, BodyEnd::After),
            ([], [coding]) if is_current && coding.eq_ignore_ascii_case(b"chunked") => BodyEnd::ChunkSize,
            _ => BodyEnd::Unknown,
        };
        let may_stay_open = is_current && values("connection").all(|value| value.eq_ignore_ascii_case(b"keep-alive"));
        Some(Self { end, may_stay_open })
    }
}

fn read_length(value: &[u8]) -> Option<u64> {
    value.iter().all(u8::is_ascii_digit).then(|| str::from_utf8(value).ok()?.parse().ok())?
}

impl BodyEnd {
    /// Takes off these bytes what belongs to the body, and gives its data to `keep`. Returns whether the body has ended.
    pub(super) fn consume(&mut self, bytes: &mut Vec<u8>, mut keep: impl FnMut(&[u8])) -> bool {
        let mut rest = &bytes[..];
        let has_ended = loop {
            match *self {
                Self::After(left) => {
                    *self = Self::After(left - take_data(left, &mut rest, &mut keep));
                    break matches!(self, Self::After(0));
                }
                Self::ChunkData(0) => *self = Self::ChunkEnd,
                Self::ChunkData(_) if rest.is_empty() => break false,
                Self::ChunkData(left) => *self = Self::ChunkData(left - take_data(left, &mut rest, &mut keep)),
                Self::ChunkSize if rest.first().is_some_and(|byte| !byte.is_ascii_hexdigit()) => *self = Self::Unknown,
                Self::ChunkSize => match httparse::parse_chunk_size(rest) {
                    Ok(Status::Complete((length, size))) => {
                        rest = &rest[length..];
                        *self = if size == 0 { Self::LastLine } else { Self::ChunkData(size) };
                    }
                    Ok(Status::Partial) if rest.len() <= MAX_SIZE_LINE => break false,
                    _ => *self = Self::Unknown,
                },
                Self::ChunkEnd | Self::LastLine => match rest {
                    [b'\r', b'\n', after @ ..] => {
                        rest = after;
                        *self = if matches!(self, Self::ChunkEnd) { Self::ChunkSize } else { Self::After(0) };
                    }
                    [] | [b'\r'] => break false,
                    _ => *self = Self::Unknown,
                },
                Self::Unknown => {
                    keep(rest);
                    rest = &[];
                    break false;
                }
            }
        };
        let taken = bytes.len() - rest.len();
        bytes.drain(..taken);
        has_ended
    }
}

/// Takes at most this many bytes off the rest, and returns how many.
fn take_data(most: u64, rest: &mut &[u8], keep: &mut impl FnMut(&[u8])) -> u64 {
    let (data, after) = rest.split_at(usize::try_from(most).unwrap_or(usize::MAX).min(rest.len()));
    keep(data);
    *rest = after;
    data.len() as u64
}
