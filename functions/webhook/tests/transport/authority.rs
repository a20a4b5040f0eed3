//! A certificate authority for tests, and receivers that show its certificates.

use std::sync::Arc;

use bytes::Bytes;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::receiver::{Handling, Receiver, answer_all};

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

    /// Issues a valid certificate for a name or an address.
    pub(crate) fn certify(&self, host: &str) -> Identity {
        Identity::new(host, (2020, 4096), Some(&self.issuer))
    }

    /// Issues a certificate that is valid from the first year to the second: expired, or not valid yet.
    pub(crate) fn certify_between(&self, host: &str, years: (i32, i32)) -> Identity {
        Identity::new(host, years, Some(&self.issuer))
    }
}

/// A certificate with its key.
pub(crate) struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// Makes a self-signed certificate.
    pub(crate) fn self_signed(host: &str) -> Self {
        Self::new(host, (2020, 4096), None)
    }

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
    pub(crate) async fn serve(self, protocols: &[&str]) -> Receiver {
        const ANSWER: Bytes = Bytes::from_static(b"HTTP/1.1 204 No Content\r\n\r\n");
        self.serve_with(protocols, |stream| Box::pin(answer_all(stream, ANSWER))).await
    }

    /// Starts a receiver that hands each connection to `handle` after the handshake.
    pub(crate) async fn serve_with(self, protocols: &[&str], handle: fn(TlsStream<TcpStream>) -> Handling) -> Receiver {
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
            Box::pin(async move { handle(acceptor.accept(stream).await?).await })
        })
        .await
    }
}
