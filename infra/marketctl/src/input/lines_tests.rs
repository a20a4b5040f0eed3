use std::io::BufReader;

use super::*;

const MAX_LINE_BYTES: usize = 1_000;
const TOO_LONG: UnreadableLine = UnreadableLine::TooLong { max_bytes: MAX_LINE_BYTES };

/// Reads every line of the stream through a buffer of seven bytes, so that longer lines take several reads.
fn lines(stream: &[u8]) -> Vec<Result<String, UnreadableLine>> {
    let mut lines = InputLines::new(BufReader::with_capacity(7, stream), MAX_LINE_BYTES);
    let (mut found, mut bytes) = (Vec::new(), 0);
    while let Some(line) = lines.next().unwrap() {
        bytes += line.bytes;
        found.push(line.text.map(str::to_owned));
    }
    assert!(bytes <= stream.len() as u64);
    found
}

#[test]
fn a_last_line_needs_no_ending_and_an_ending_may_be_that_of_windows() {
    assert_eq!(lines(b""), []);
    assert_eq!(lines(b"{1}"), [Ok("{1}".to_owned())]);
    assert_eq!(lines(b"{1}\n{2}"), [Ok("{1}".to_owned()), Ok("{2}".to_owned())]);
    assert_eq!(lines(b"{1}\r\n{2}\r\n"), [Ok("{1}".to_owned()), Ok("{2}".to_owned())]);
}

#[test]
fn an_empty_line_is_refused_unless_it_is_the_last() {
    assert_eq!(lines(b"\n"), []);
    assert_eq!(lines(b"{1}\n\n"), [Ok("{1}".to_owned())]);
    assert_eq!(lines(b"{1}\r\n\r\n"), [Ok("{1}".to_owned())]);
    assert_eq!(lines(b"{1}\n\n{2}\n"), [Ok("{1}".to_owned()), Err(UnreadableLine::Empty), Ok("{2}".to_owned())]);
    assert_eq!(lines(b"{1}\n\n\n"), [Ok("{1}".to_owned()), Err(UnreadableLine::Empty)]);
    assert_eq!(lines(b"{1}\n \t\n"), [Ok("{1}".to_owned()), Ok(" \t".to_owned())]);
}

#[test]
fn bytes_that_are_no_utf_8_spoil_their_own_line_only() {
    assert_eq!(
        lines(b"{1}\n\xff\xfe\n{2}\n"),
        [Ok("{1}".to_owned()), Err(UnreadableLine::NotUtf8), Ok("{2}".to_owned())]
    );
}

#[test]
fn the_longest_line_is_read_and_a_longer_one_is_not_held() {
    let longest = "é".repeat(MAX_LINE_BYTES / 2);
    for ending in ["", "\n", "\r\n", "\n{2}", "\r\n{2}"] {
        let found = lines(format!("{longest}{ending}").as_bytes());
        assert_eq!(found[0].as_ref().map(String::len), Ok(MAX_LINE_BYTES));
        assert_eq!(found.len(), if ending.ends_with('}') { 2 } else { 1 });
    }
    for extra in [1, 2, 3, 1_000_000] {
        let stream = format!("{longest}{}\n{{2}}\n", "x".repeat(extra));
        let mut long = InputLines::new(stream.as_bytes(), MAX_LINE_BYTES);
        let line = long.next().unwrap().unwrap();
        assert_eq!(line, InputLine { text: Err(TOO_LONG), bytes: (MAX_LINE_BYTES + extra + 1) as u64 });
        assert_eq!(long.next().unwrap().unwrap().text, Ok("{2}"));
        assert!(long.buffer.capacity() <= 4 * MAX_LINE_BYTES);
    }
    assert_eq!(lines(format!("{longest}xxx").as_bytes()), [Err(TOO_LONG)]);
}
