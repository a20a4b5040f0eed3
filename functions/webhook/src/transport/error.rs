//! Why a POST got no answer. The endpoint's owner may read these messages, so they name no address: the owner must not
//! learn what a name resolves to inside our network.

use std::io;
use std::time::Duration;

use rustls::CertificateError as Certificate;
use thiserror::Error;
use webhooks::guard::{AddressRefusal, NOT_PUBLIC, UrlRefusal};

/// Why a POST got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PostError {
    /// The URL is not allowed. Its host name was not looked up.
    #[error("the URL is not allowed: it {0}")]
    Url(UrlRefusal),
    /// There is no such host name, it has no address, or its name servers do not answer.
    #[error("{NOT_PUBLIC}")]
    Unresolved,
    /// An address of the host is not public. No connection was made.
    #[error("{NOT_PUBLIC}")]
    NotPublic,
    /// Every address refused the connection or is unreachable.
    #[error("cannot connect")]
    Unreachable,
    /// The instance has no file descriptor or no memory for a connection. That says nothing about the receiver.
    #[error("this instance cannot open a connection")]
    Exhausted,
    /// There is no TLS connection.
    #[error("TLS: {0}")]
    Tls(TlsFailure),
    /// The deadline passed, whichever step was under way.
    #[error("no answer within {} s", .0.as_secs_f32())]
    NoAnswer(Duration),
    /// The connection was closed or reset before a status. The receiver may have got the request.
    #[error("the connection was closed before an answer")]
    Closed,
    /// What came does not begin with a status line.
    #[error("the answer is not HTTP/1.1")]
    NotHttp,
    /// The connection or the time ended within the head of an answer with this status.
    #[error("the answer has the status {0}, but its headers do not end")]
    HeadIncomplete(u16),
    /// The heads of the answer and of informational answers before it are longer than 32 KB. The status is that of the last
    /// one that began, if any.
    #[error("the answer's headers are too long{}", .0.map(|status| format!(", after the status {status}")).unwrap_or_default())]
    HeadTooLong(Option<u16>),
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
