//! Checks that the server's certificate is verified over TLS.

use std::sync::Arc;

use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::{client_trusting, ring};
use crate::store::explain;

/// Starts a DynamoDB that has no tables, with a certificate for `name`. Returns its endpoint and the root certificate
/// that vouches for it.
async fn store(name: &str) -> (String, RootCertStore) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed([name.to_owned()]).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let acceptor = TlsAcceptor::from(Arc::new(config.with_single_cert(vec![cert.der().clone()], key.into()).unwrap()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            // The request fits in one TLS record.
            let _ = stream.read(&mut [0; 16_384]).await.unwrap();
            let answer = "HTTP/1.1 200 OK\r\ncontent-length: 17\r\nconnection: close\r\n\r\n{\"TableNames\":[]}";
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
        }
    });
    (format!("https://localhost:{port}"), roots)
}

async fn tables(endpoint: &str, roots: RootCertStore) -> Result<Vec<String>, String> {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("id", "secret", None, None, "test"))
        .endpoint_url(endpoint)
        .http_client(client_trusting(roots));
    let listed = aws_sdk_dynamodb::Client::from_conf(config.build()).list_tables().send().await;
    listed.map(|listed| listed.table_names.unwrap_or_default()).map_err(|error| explain(&error))
}

#[tokio::test]
async fn only_a_certificate_of_a_known_authority_for_this_name_is_accepted() {
    let (endpoint, roots) = store("localhost").await;
    assert_eq!(tables(&endpoint, roots).await, Ok(Vec::new()));
    let unknown = tables(&endpoint, super::roots()).await.unwrap_err();
    assert!(unknown.contains("UnknownIssuer"), "{unknown}");
    let (endpoint, roots) = store("elsewhere.example").await;
    let misnamed = tables(&endpoint, roots).await.unwrap_err();
    assert!(misnamed.contains("not valid for name"), "{misnamed}");
}
