//! Receives one delivery of a webhook. A program of its own would use its web framework.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener};

use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::Result;

/// Returns the body of the next delivery, once its signature is verified.
pub fn receive(port: u16, secret: &str) -> Result<Vec<u8>> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    println!("listening");
    let (mut connection, _) = listener.accept()?;
    let mut reader = BufReader::new(connection.try_clone()?);
    let (mut length, mut signature) = (0_usize, String::new());
    for line in reader.by_ref().lines() {
        let line = line?;
        match line.split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("Content-Length") => length = value.trim().parse()?,
            Some((name, value)) if name.eq_ignore_ascii_case("X-Service-Signature") => {
                value.trim().clone_into(&mut signature);
            }
            None if line.is_empty() => break,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    verify(secret, &body, &signature)?;
    connection.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")?;
    Ok(body)
}

fn verify(secret: &str, body: &[u8], signature: &str) -> Result {
    let tag = hex::decode(signature.strip_prefix("sha256=").ok_or("no signature")?)?;
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes())?;
    mac.update(body);
    Ok(mac.verify_slice(&tag)?)
}
