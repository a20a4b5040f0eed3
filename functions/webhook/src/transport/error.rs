//! Why a POST got no answer, in words that its endpoint's owner may read: they name no address, since
//! what a name resolves to here is none of the owner's business.

use std::error::Error;
use std::io;
use std::time::Duration;

use guard::{AddressRefusal, UrlRefusal};
use hyper_util::client::legacy;
use rustls::CertificateError as Certificate;
use thiserror::Error;

/// Why a POST got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PostError {
    /// Nothing was looked up.
    #[error("the URL is not allowed: it {0}")]
    Url(UrlRefusal),
    /// There is no such name, it has no address, or its servers do not answer.
    #[error("the host name does not resolve")]
    Unresolved,
    /// Nothing was connected to.
    #[error("the host name has an address that is not public")]
    NotPublic,
    /// Refused or unreachable at each address.
    #[error("cannot connect")]
    Unreachable,
    /// Nothing was sent inside.
    #[error("TLS: {0}")]
    Tls(TlsFailure),
    /// The time was up, whatever it was spent on.
    #[error("no answer within {} s", .0.as_secs_f32())]
    NoAnswer(Duration),
    /// Closed or reset; the request may have been received.
    #[error("the connection was closed before an answer")]
    Closed,
    /// Its first line or one of its headers makes no sense.
    #[error("the answer is not HTTP/1.1")]
    NotHttp,
    /// More than 32 KB or 100 headers.
    #[error("the answer's head is too long")]
    HeadTooLong,
}

/// Why there was no TLS connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TlsFailure {
    /// No known authority stands behind it, or it is malformed or not fit for a server.
    #[error("the certificate is not trusted")]
    Untrusted,
    /// Or not valid yet.
    #[error("the certificate has expired or is not valid yet")]
    Expired,
    /// It names other hosts.
    #[error("the certificate is for another name")]
    Name,
    /// No common version, cipher or protocol, or the other side broke off.
    #[error("the handshake failed")]
    Handshake,
}

impl TlsFailure {
    /// What the TLS library says by way of an I/O error.
    pub(super) fn of(error: &io::Error) -> Option<Self> {
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

/// The client wraps what the connector and the protocol say.
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
    // With TLS 1.3 a server refuses a client, one without a certificate say, after the handshake.
    TlsFailure::of(cause.downcast_ref()?).map(PostError::Tls)
}
