//! Why a POST got no answer. The endpoint's owner may read the messages, so they name no address: the owner must not
//! learn what a name resolves to inside our network.

use std::error::Error;
use std::io;
use std::time::Duration;

use hyper_util::client::legacy;
use rustls::CertificateError as Certificate;
use thiserror::Error;
use webhooks::guard::{AddressRefusal, UrlRefusal};

/// Why a POST got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PostError {
    /// The URL is not allowed. Its host name was not looked up.
    #[error("the URL is not allowed: it {0}")]
    Url(UrlRefusal),
    /// There is no such host name, it has no address, or its name servers do not answer.
    #[error("the host name does not resolve")]
    Unresolved,
    /// An address of the host is not public. No connection was made.
    #[error("the host name has an address that is not public")]
    NotPublic,
    /// Every address refused the connection or is unreachable.
    #[error("cannot connect")]
    Unreachable,
    /// There is no TLS connection.
    #[error("TLS: {0}")]
    Tls(TlsFailure),
    /// The deadline passed, whichever step was under way.
    #[error("no answer within {} s", .0.as_secs_f32())]
    NoAnswer(Duration),
    /// The connection was closed or reset. The receiver may have got the request.
    #[error("the connection was closed before an answer")]
    Closed,
    /// The first line or a header of the answer is malformed.
    #[error("the answer is not HTTP/1.1")]
    NotHttp,
    /// The answer's head is longer than 32 KB or has more than 100 headers.
    #[error("the answer's head is too long")]
    HeadTooLong,
}

/// Why there was no TLS connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TlsFailure {
    /// No known authority has issued the certificate, or it is malformed or not meant for servers.
    #[error("the certificate is not trusted")]
    Untrusted,
    /// The certificate is not valid at this time.
    #[error("the certificate has expired or is not valid yet")]
    Expired,
    /// The certificate names other hosts.
    #[error("the certificate is for another name")]
    Name,
    /// There is no common version, cipher or protocol, or the receiver broke off.
    #[error("the handshake failed")]
    Handshake,
}

impl TlsFailure {
    /// Reads the failure from an I/O error of the TLS library; `None` if the error is not about TLS.
    pub(super) fn from_io(error: &io::Error) -> Option<Self> {
        Some(match error.get_ref()?.downcast_ref()? {
            rustls::Error::InvalidCertificate(certificate) => match certificate {
                Certificate::Expired
                | Certificate::ExpiredContext { .. }
                | Certificate::NotValidYet
                | Certificate::NotValidYetContext { .. } => Self::Expired,
                Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => Self::Name,
                _ => Self::Untrusted,
            },
            _ => Self::Handshake,
        })
    }
}

impl From<TlsFailure> for PostError {
    fn from(failure: TlsFailure) -> Self {
        Self::Tls(failure)
    }
}

impl From<AddressRefusal> for PostError {
    fn from(refusal: AddressRefusal) -> Self {
        match refusal {
            AddressRefusal::None => Self::Unresolved,
            AddressRefusal::NotPublic => Self::NotPublic,
        }
    }
}

/// Finds the connector's or the protocol's error, which the client wraps in its own.
impl From<legacy::Error> for PostError {
    fn from(error: legacy::Error) -> Self {
        let mut cause = error.source();
        while let Some(error) = cause {
            if let Some(error) = read_cause(error) {
                return error;
            }
            cause = error.source();
        }
        Self::Closed
    }
}

fn read_cause(cause: &(dyn Error + 'static)) -> Option<PostError> {
    if let Some(error) = cause.downcast_ref::<PostError>() {
        return Some(*error);
    }
    if let Some(error) = cause.downcast_ref::<hyper::Error>() {
        return match error {
            error if error.is_parse_too_large() => Some(PostError::HeadTooLong),
            error if error.is_parse() => Some(PostError::NotHttp),
            _ => None,
        };
    }
    // With TLS 1.3 a server refuses a client, for example one without a certificate, only after the handshake.
    TlsFailure::from_io(cause.downcast_ref()?).map(PostError::Tls)
}
