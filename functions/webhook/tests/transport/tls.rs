//! Which certificates the client accepts.

use tokio::io::AsyncWriteExt;
use webhook::transport::{PostError, Reach, TlsFailure, Transport};

use crate::authority::{Authority, Identity};
use crate::receiver::{LOOPBACK, Receiver, post, until_closed};
use crate::resolver::{ScriptedResolver, reach};

const NAME: &str = "hooks.example.com";

fn trusting(authority: &Authority) -> Transport {
    Transport::new(Reach { roots: authority.roots(), ..reach(ScriptedResolver::all_at(LOOPBACK)) }).unwrap()
}

#[tokio::test]
async fn a_valid_certificate_is_accepted_and_its_connection_is_used_again() {
    let authority = Authority::new();
    for (certified, host) in
        [(NAME, NAME), (NAME, "Hooks.Example.COM."), ("*.example.com", NAME), ("127.0.0.1", "127.0.0.1")]
    {
        for protocols in [&["h2", "http/1.1"][..], &["http/1.1"], &[]] {
            let receiver = authority.certify(certified).serve(protocols).await;
            let client = trusting(&authority);
            for _ in 0..3 {
                let posted = post(&client, &receiver.url_at("https", host)).await;
                assert_eq!(posted.outcome, Ok(204), "{certified} for {host}");
            }
            assert_eq!(receiver.accepted(), 1);
        }
    }
}

#[tokio::test]
async fn wrong_certificates_are_refused() {
    let authority = Authority::new();
    for (identity, failure) in [
        (Identity::self_signed(NAME), TlsFailure::Untrusted),
        (Authority::new().certify(NAME), TlsFailure::Untrusted),
        (authority.certify_between(NAME, (2020, 2021)), TlsFailure::Expired),
        (authority.certify_between(NAME, (4000, 4001)), TlsFailure::Expired),
        (authority.certify("hooks.example.org"), TlsFailure::Name),
        (authority.certify("example.com"), TlsFailure::Name),
        (authority.certify("127.0.0.1"), TlsFailure::Name),
    ] {
        let receiver = identity.serve(&[]).await;
        let outcome = post(&trusting(&authority), &receiver.url_at("https", NAME)).await.outcome;
        assert_eq!(outcome, Err(PostError::Tls(failure)));
    }
    let receiver = authority.certify(NAME).serve(&[]).await;
    let by_address = post(&trusting(&authority), &receiver.url_at("https", "127.0.0.1")).await.outcome;
    assert_eq!(by_address, Err(PostError::Tls(TlsFailure::Name)));
}

#[tokio::test]
async fn the_public_roots_do_not_trust_other_authorities() {
    let authority = Authority::new();
    let receiver = authority.certify(NAME).serve(&[]).await;
    let client =
        Transport::new(Reach { roots: Reach::public().roots, ..reach(ScriptedResolver::all_at(LOOPBACK)) }).unwrap();
    let outcome = post(&client, &receiver.url_at("https", NAME)).await.outcome;
    assert_eq!(outcome, Err(PostError::Tls(TlsFailure::Untrusted)));
}

#[tokio::test]
async fn a_receiver_without_tls_or_http_1_is_refused() {
    let authority = Authority::new();
    let h2_only = authority.certify(NAME).serve(&["h2"]).await;
    let plain = Receiver::start(|mut stream| {
        Box::pin(async move {
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await?;
            until_closed(stream).await
        })
    });
    let closing = Receiver::start(|_| Box::pin(async { Ok(()) }));
    for receiver in [h2_only, plain.await, closing.await] {
        let outcome = post(&trusting(&authority), &receiver.url_at("https", NAME)).await.outcome;
        assert_eq!(outcome, Err(PostError::Tls(TlsFailure::Handshake)));
    }
}

#[test]
fn each_tls_failure_has_its_text() {
    let texts = [
        (TlsFailure::Untrusted, "TLS: the certificate is not trusted"),
        (TlsFailure::Expired, "TLS: the certificate has expired or is not valid yet"),
        (TlsFailure::Name, "TLS: the certificate is for another name"),
        (TlsFailure::Handshake, "TLS: the handshake failed"),
    ];
    for (failure, text) in texts {
        assert_eq!(PostError::Tls(failure).to_string(), text);
    }
}
