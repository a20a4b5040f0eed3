//! Which certificates the client accepts. With a certificate authority for tests, and receivers that show its
//! certificates.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{RootCertStore, ServerConfig};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::receiver::{
    LOOPBACK, REST, Receiver, ScriptedResolver, answer_all, client_with_clock, post, reach, until_closed,
};
use webhook::transport::{PostError, Reach, TlsFailure, Transport};

const NAME: &str = "hooks.example.com";

pub(crate) struct Authority {
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap().der().clone();
        Self { certificate, issuer: Issuer::new(params, key) }
    }

    /// Returns root certificates for a client that trusts only this authority.
    pub(crate) fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        Arc::new(roots)
    }

    /// The reach of a client that trusts only this authority, and finds every name at the receiver.
    fn reach(&self) -> Reach {
        Reach { roots: self.roots(), ..reach(ScriptedResolver::all_at(LOOPBACK)) }
    }

    /// Issues a valid certificate for a name or an address.
    pub(crate) fn certify(&self, host: &str) -> Identity {
        Identity::new(host, (2020, 4096), Some(&self.issuer))
    }
}

/// A certificate with its key.
pub(crate) struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// Makes a certificate that is valid from the first year to the second, self-signed without an issuer.
    fn new(host: &str, (from, to): (i32, i32), issuer: Option<&Issuer<'_, KeyPair>>) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        params.not_before = date_time_ymd(from, 1, 1);
        params.not_after = date_time_ymd(to, 1, 1);
        let certificate = match issuer {
            Some(issuer) => params.signed_by(&key, issuer),
            None => params.self_signed(&key),
        };
        Self { certificate: certificate.unwrap().der().clone(), key: key.into() }
    }

    /// Starts a receiver that shows this certificate, offers these protocols and answers 204.
    async fn serve(self, protocols: &[&str]) -> Receiver {
        const ANSWER: Bytes = Bytes::from_static(b"HTTP/1.1 204 No Content\r\n\r\n");
        self.serve_with(protocols, |stream| answer_all(stream, ANSWER)).await
    }

    /// Starts a receiver that hands each connection to `handle` after the handshake.
    pub(crate) async fn serve_with<F>(self, protocols: &[&str], handle: fn(TlsStream<TcpStream>) -> F) -> Receiver
    where
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate], self.key)
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Receiver::start(move |stream| {
            let acceptor = acceptor.clone();
            async move { handle(acceptor.accept(stream).await?).await }
        })
        .await
    }
}

fn trusting(authority: &Authority) -> Transport {
    Transport::new(authority.reach()).unwrap()
}

#[tokio::test]
async fn a_valid_certificate_is_accepted_and_its_connection_is_used_again() {
    let authority = Authority::new();
    for (certified, host) in
        [(NAME, NAME), (NAME, "Hooks.Example.COM."), ("*.example.com", NAME), ("127.0.0.1", "127.0.0.1")]
    {
        for protocols in [&["h2", "http/1.1"][..], &["http/1.1"], &[]] {
            let receiver = authority.certify(certified).serve(protocols).await;
            let (client, clock) = client_with_clock(authority.reach());
            for _ in 0..3 {
                let posted = post(&client, &receiver.url_at("https", host)).await;
                assert_eq!(posted.outcome, Ok(204), "{certified} for {host}");
                clock.advance(REST);
            }
            assert_eq!(receiver.accepted(), 1);
        }
    }
}

#[tokio::test]
async fn wrong_certificates_are_refused() {
    let authority = Authority::new();
    for (identity, failure) in [
        (Identity::new(NAME, (2020, 4096), None), TlsFailure::Untrusted),
        (Authority::new().certify(NAME), TlsFailure::Untrusted),
        (Identity::new(NAME, (2020, 2021), Some(&authority.issuer)), TlsFailure::Expired),
        (Identity::new(NAME, (4000, 4001), Some(&authority.issuer)), TlsFailure::Expired),
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
    let plain = Receiver::start(|mut stream| async move {
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await?;
        until_closed(stream).await
    });
    let closing = Receiver::start(|_| async { Ok(()) });
    for receiver in [h2_only, plain.await, closing.await] {
        let outcome = post(&trusting(&authority), &receiver.url_at("https", NAME)).await.outcome;
        assert_eq!(outcome, Err(PostError::Tls(TlsFailure::Handshake)));
    }
}
