//! Runs the programs of the receiver's guide on what we sign.

use http::{HeaderMap, HeaderValue};
use secrets::{EndpointSecret, service_signature, standard_signature};
use tests::{SignatureValidity, Verifier};
use types::clock::{Clock, SystemClock};
use types::timestamp::Timestamp;

const ID: &str = "0b5e7a52-6f3d-5c1e-9d0a-3f6a1b2c4d5e";
const BODY: &str = r#"{"id":"0b5e7a52-6f3d-5c1e-9d0a-3f6a1b2c4d5e","event":"wallet.deposit","created_at":"2026-11-20T10:04:31.250Z","data":{ "name":"Ünï★" }}"#;
const NEITHER_VALID: SignatureValidity = SignatureValidity { service: false, standard: false };
const BOTH_VALID: SignatureValidity = SignatureValidity { service: true, standard: true };

fn secrets() -> [EndpointSecret; 2] {
    [7, 8].map(|bits| EndpointSecret::from_bits([bits; 32]))
}

fn now() -> Timestamp {
    SystemClock::new().now()
}

/// Returns the headers of an attempt. The first secret is the active one.
fn headers(secrets: &[EndpointSecret], sent_at: Timestamp) -> HeaderMap {
    let values = [
        ("x-service-signature", service_signature(&secrets[0], BODY.as_bytes())),
        ("webhook-id", ID.to_owned()),
        ("webhook-timestamp", sent_at.seconds().to_string()),
        ("webhook-signature", standard_signature(secrets, ID, sent_at, BODY.as_bytes())),
    ];
    values.into_iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
}

async fn assert_all_say(expected: SignatureValidity, secret: &EndpointSecret, headers: &HeaderMap, body: &str) {
    for verifier in Verifier::ALL {
        let validity = verifier.verify(&secret.reveal(), headers, body.as_bytes()).await;
        assert_eq!(validity, expected, "{verifier:?} of {headers:?} and {body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_we_sign_is_accepted_and_nothing_else() {
    let [secret, other] = secrets();
    let genuine = headers(std::slice::from_ref(&secret), now());
    assert_all_say(BOTH_VALID, &secret, &genuine, BODY).await;
    assert_all_say(NEITHER_VALID, &other, &genuine, BODY).await;
    for forged in [BODY.replace("deposit", "deposjt"), BODY.replace("{ ", "{"), format!("{BODY}\n"), String::new()] {
        assert_all_say(NEITHER_VALID, &secret, &genuine, &forged).await;
    }
    let of_other = headers(&[other], now());
    assert_all_say(NEITHER_VALID, &secret, &of_other, BODY).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_and_missing_headers_are_refused() {
    let [secret, _] = secrets();
    let genuine = headers(std::slice::from_ref(&secret), now());
    for value in ["", "sha256=", "sha256=zz", "v1", "v1,", "v1,,", "v1,zz"] {
        let mut forged = genuine.clone();
        forged.insert("x-service-signature", HeaderValue::from_static(value));
        forged.insert("webhook-signature", HeaderValue::from_static(value));
        assert_all_say(NEITHER_VALID, &secret, &forged, BODY).await;
    }
    assert_all_say(NEITHER_VALID, &secret, &HeaderMap::new(), BODY).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_standard_header_alone_tells_an_old_attempt_and_another_id() {
    let [secret, _] = secrets();
    let service_alone = SignatureValidity { service: true, standard: false };
    let at = |millis| headers(std::slice::from_ref(&secret), now().plus_millis(millis));
    for (minutes, expected) in [(-6, service_alone), (-4, BOTH_VALID), (4, BOTH_VALID), (6, service_alone)] {
        assert_all_say(expected, &secret, &at(minutes * 60_000), BODY).await;
    }
    let mut renamed = at(0);
    renamed.insert("webhook-id", HeaderValue::from_static("1b5e7a52-6f3d-5c1e-9d0a-3f6a1b2c4d5e"));
    assert_all_say(service_alone, &secret, &renamed, BODY).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_secret_is_rotated_the_standard_header_suits_receivers_of_either() {
    let [old, next] = secrets();
    let rotating = headers(&[old.clone(), next.clone()], now());
    assert_all_say(BOTH_VALID, &old, &rotating, BODY).await;
    assert_all_say(SignatureValidity { service: false, standard: true }, &next, &rotating, BODY).await;
}
