use super::SignatureStatus::{Missing, Unknown, Verified, Wrong};
use super::*;

const BODY: &[u8] = b"{\"id\":1}";
const SENT_SECONDS: i64 = 1_795_262_400;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000 + 999)
}

fn secret(bit: u8) -> EndpointSecret {
    EndpointSecret::from_bits([bit; 32])
}

/// Returns the headers of a delivery sent at `SENT_SECONDS` and signed with these secrets.
fn signed(active: u8, valid: &[u8]) -> Headers {
    let secrets: Vec<_> = valid.iter().copied().map(secret).collect();
    let headers = [
        ("x-service-signature", service_signature(&secret(active), BODY)),
        ("webhook-id", "an id".to_owned()),
        ("webhook-timestamp", SENT_SECONDS.to_string()),
        ("webhook-signature", standard_signature(&secrets, "an id", at(SENT_SECONDS), BODY)),
    ];
    headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn with(mut headers: Headers, name: &str, value: &str) -> Headers {
    headers.insert(name.to_owned(), value.to_owned());
    headers
}

fn without(mut headers: Headers, name: &str) -> Headers {
    headers.remove(name).unwrap();
    headers
}

/// Returns both statuses that a receiver finds who knows these secrets.
fn statuses(known: &[u8], headers: &Headers) -> (SignatureStatus, SignatureStatus) {
    let known: Vec<_> = known.iter().copied().map(secret).collect();
    let verification = Verification::new(&known, headers, BODY, at(SENT_SECONDS));
    assert_eq!(verification.standard_problem, None);
    (verification.service_signature, verification.standard_signature)
}

fn problem(now: i64, timestamp: &str) -> (SignatureStatus, Option<&'static str>) {
    let headers = with(signed(1, &[1]), "webhook-timestamp", timestamp);
    let verification = Verification::new(&[secret(1)], &headers, BODY, at(now));
    assert_eq!(verification.service_signature, Verified, "this signature does not cover the time");
    (verification.standard_signature, verification.standard_problem)
}

#[test]
fn any_of_the_secrets_and_any_of_the_signatures_will_do() {
    for (known, active, valid, expected) in [
        (&[1][..], 1, &[1][..], (Verified, Verified)),
        (&[2], 1, &[1], (Wrong, Wrong)),
        (&[3, 1], 1, &[1], (Verified, Verified)),
        (&[1], 1, &[2, 1], (Verified, Verified)),
        (&[2], 1, &[2, 1], (Wrong, Verified)),
        (&[], 1, &[1], (Unknown, Unknown)),
    ] {
        assert_eq!(statuses(known, &signed(active, valid)), expected, "{known:?} {active} {valid:?}");
    }
}

#[test]
fn what_is_missing_is_not_wrong() {
    assert_eq!(statuses(&[1], &Headers::new()), (Missing, Missing));
    assert_eq!(statuses(&[], &Headers::new()), (Unknown, Unknown));
    assert_eq!(statuses(&[1], &without(signed(1, &[1]), "x-service-signature")), (Missing, Verified));
    for part in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
        assert_eq!(statuses(&[1], &without(signed(1, &[1]), part)), (Verified, Missing), "{part}");
    }
}

#[test]
fn a_signature_of_another_form_is_wrong() {
    let right = signed(1, &[1]);
    let (service, standard) = (&right["x-service-signature"], &right["webhook-signature"]);
    for bad in ["", "sha256=", &service[7..], &service.to_uppercase(), &format!("{service} "), &service[..70]] {
        assert_eq!(statuses(&[1], &with(right.clone(), "x-service-signature", bad)).0, Wrong, "{bad:?}");
    }
    for bad in ["", " ", "v1,", &standard[3..], &standard.replace("v1", "v2"), &standard.replace("v1,", "v1a,")] {
        assert_eq!(statuses(&[1], &with(right.clone(), "webhook-signature", bad)).1, Wrong, "{bad:?}");
    }
    assert_eq!(statuses(&[1], &with(right.clone(), "webhook-id", "another")).1, Wrong);
    assert_eq!(statuses(&[1], &with(right.clone(), "webhook-timestamp", &(SENT_SECONDS - 1).to_string())).1, Wrong);
    assert_eq!(statuses(&[1], &with(right.clone(), "webhook-signature", &format!("v1,x {standard}"))).1, Verified);
}

#[test]
fn a_changed_body_is_wrong() {
    let verification = Verification::new(&[secret(1)], &signed(1, &[1]), b"{\"id\":2}", at(SENT_SECONDS));
    assert_eq!((verification.service_signature, verification.standard_signature), (Wrong, Wrong));
}

#[test]
fn a_time_more_than_five_minutes_off_is_told_apart() {
    let sent = SENT_SECONDS.to_string();
    for (now, expected) in [
        (SENT_SECONDS + 300, (Verified, None)),
        (SENT_SECONDS + 301, (Wrong, Some("too old"))),
        (SENT_SECONDS - 300, (Verified, None)),
        (SENT_SECONDS - 301, (Wrong, Some("too far in the future"))),
    ] {
        assert_eq!(problem(now, &sent), expected, "{now}");
    }
    assert_eq!(problem(SENT_SECONDS, &i64::MAX.to_string()), (Wrong, Some("too far in the future")));
    assert_eq!(problem(SENT_SECONDS, &i64::MIN.to_string()), (Wrong, Some("too old")));
    for bad in [
        "",
        "soon",
        "1e9",
        &format!("+{SENT_SECONDS}"),
        &format!("0{SENT_SECONDS}"),
        &format!("{SENT_SECONDS} "),
        &"9".repeat(20),
    ] {
        assert_eq!(problem(SENT_SECONDS, bad), (Wrong, Some("the timestamp is no Unix time")), "{bad:?}");
    }
}
