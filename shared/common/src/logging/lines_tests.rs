use std::cell::RefCell;
use std::io;

use super::*;

thread_local! {
    static WRITTEN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

struct Paper;

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        WRITTEN.with_borrow_mut(|written| written.extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs `events` and returns the lines that were written, each without its time.
fn written(most: LevelFilter, wanted: fn(&Metadata<'_>) -> bool, events: impl FnOnce()) -> Vec<String> {
    let function = Some("me".to_owned());
    let lines = LineSubscriber { most, wanted, function, writer: || Box::new(Paper) };
    tracing::subscriber::with_default(lines, events);
    let text = String::from_utf8(WRITTEN.take()).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'));
    let untimed = |line: &str| {
        let rest = line.strip_prefix(r#"{"timestamp":""#).unwrap();
        let (at, rest) = rest.split_once('"').unwrap();
        assert!(at.parse::<Timestamp>().is_ok(), "{at}");
        rest.to_owned()
    };
    text.lines().map(untimed).collect()
}

/// A single test covers all of this, because the invocation is global to the process.
#[test]
fn each_event_is_a_flat_line_with_level_and_invocation() {
    let told = written(
        LevelFilter::INFO,
        |_| true,
        || {
            let error: Box<dyn std::error::Error> = "it \"broke\"\n".into();
            tracing::warn!(
                number = 7,
                negative = -1_i8,
                share = 0.5,
                yes = true,
                nobody = None::<&str>,
                "with {}",
                "fields"
            );
            tracing::debug!("too fine");
            let _span = tracing::error_span!("around", hidden = 1).entered();
            tracing::error!(error = &*error, shown = ?Some(1));
            set_invocation("one", Some("Root=1-abc;Parent=2;Sampled=0"));
            tracing::info!(target: WIDE, members = r#""message":"request","Latency":1"#);
            set_invocation("two", Some("Root=1-abc;Parent=2;Sampled=1"));
            tracing::info!("done");
        },
    );
    let expected = [
        r#","level":"WARN","FunctionName":"me","message":"with fields","number":7,"negative":-1,"share":0.5,"yes":true}"#,
        r#","level":"ERROR","FunctionName":"me","error":"it \"broke\"\n","shown":"Some(1)"}"#,
        r#","level":"INFO","lambda_request_id":"one","message":"request","Latency":1}"#,
        r#","level":"INFO","lambda_request_id":"two","trace_id":"1-abc","FunctionName":"me","message":"done"}"#,
    ];
    assert_eq!(told, expected);
}

#[test]
fn what_is_not_wanted_is_left_out() {
    let told = written(LevelFilter::WARN, crate::logging::is_audit, || {
        tracing::warn!(target: crate::logging::AUDIT, "changed");
        tracing::error!("broken");
        tracing::info!(target: crate::logging::AUDIT, "too fine");
    });
    assert!(matches!(&told[..], [line] if line.ends_with(r#""message":"changed"}"#)), "{told:?}");
}
