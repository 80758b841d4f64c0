//! TLS: certificates, and clients that speak something else.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_admission::certificates::Certificates;
use innkeeper_admission::server::TlsError;
use innkeeper_admission::{AdmissionServer, ServerLimits, TlsCertificate};
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::Instant;

use crate::harness::{ADDRESS, Server, client_config, made_certificates, review};

#[tokio::test(start_paused = true)]
async fn swapped_certificate_is_used_by_the_next_handshake_and_harms_no_connection() {
    let server = Server::start(ServerLimits::default());
    let mut before = server.connect().await;
    let other = made_certificates();
    server.certificate.send_replace(TlsCertificate::new(other.serving()).unwrap());

    assert!(server.connect_by(ADDRESS, client_config(&server.bundle)).await.is_err());
    let after = server.connect_by(ADDRESS, client_config(&other.bundle())).await;
    for client in [&mut after.unwrap(), &mut before] {
        assert!(client.post("/v1/policies/allows/0").await.is_allowed());
    }
}

#[test]
fn certificate_with_the_key_of_another_is_refused_before_it_is_used() {
    let mut data: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for (name, text) in made_certificates().secret_data() {
        data.insert(name, text.into_bytes());
    }
    let other = made_certificates().secret_data();
    data.insert("tls.key".to_owned(), other["tls.key"].clone().into_bytes());
    let mixed = Certificates::from_secret_data(&data).unwrap();
    let error = TlsCertificate::new(mixed.serving()).unwrap_err().to_string();
    assert!(error.contains("tls.key") && error.contains("delete the Secret"), "{error}");
}

/// An authority as PEM, and the certificate of a client that it has signed.
fn signed_client() -> (String, Arc<SingleCertAndKey>) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);

    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let certificate = params.signed_by(&key, &issuer).unwrap().der().clone();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = rustls::crypto::ring::default_provider();
    let key = CertifiedKey::from_der(vec![certificate], key, &provider).unwrap();
    (authority, Arc::new(SingleCertAndKey::from(key)))
}

#[tokio::test(start_paused = true)]
async fn only_clients_of_the_authority_are_answered_if_there_is_one() {
    let (authority, certificate) = signed_client();
    let (_, of_another) = signed_client();
    let server = Server::start_for(ServerLimits::default(), Some(&authority));
    let with = |certificate: Arc<SingleCertAndKey>| {
        let mut config = client_config(&server.bundle);
        config.client_auth_cert_resolver = certificate;
        config
    };
    let mut client = server.connect_by(ADDRESS, with(certificate)).await.unwrap();
    assert!(client.post("/v1/policies/allows/0").await.is_allowed());

    for config in [client_config(&server.bundle), with(of_another)] {
        // In TLS 1.3 the client learns of it with the first answer.
        let mut stranger = server.connect_by(ADDRESS, config).await.unwrap();
        let _ = stranger.stream.write_all(b"POST / HTTP/1.1\r\n\r\n").await;
        assert!(stranger.try_answer().await.is_none());
    }
    server.wait_for(|now| now.refused("handshake") == 2 && now.connections == 1).await;
}

#[tokio::test(start_paused = true)]
async fn authority_of_clients_without_a_certificate_is_an_error() {
    let server = Server::start(ServerLimits::default());
    for pem in ["", "hello", "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n"] {
        let (reviewer, limits) = (Arc::clone(&server.reviewer), ServerLimits::default());
        let made =
            AdmissionServer::new(server.certificate.subscribe(), Some(pem), reviewer, limits);
        assert!(matches!(made.err(), Some(TlsError::ClientAuthority(_))), "{pem}");
    }
}

#[tokio::test(start_paused = true)]
async fn garbage_instead_of_tls_is_closed_at_once() {
    let server = Server::start(ServerLimits::default());
    // A record of SSL 3, one that announces 64 KiB, and no record at all.
    for garbage in [
        b"POST /v1/policies/allows/0 HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        b"\x16\x03\x00\x00\x04\x01\x00\x00\x00".to_vec(),
        b"\x16\x03\x01\xff\xff\x01".to_vec(),
        vec![0; 4096],
        vec![0xff; 4096],
    ] {
        let started = Instant::now();
        let mut stream = server.open(ADDRESS);
        let _ = stream.write_all(&garbage).await;
        let _ = stream.read_to_end(&mut Vec::new()).await;
        assert!(started.elapsed() < Duration::from_secs(1), "{garbage:?}");
    }
    server.wait_for(|now| now.connections == 0).await;
    assert_eq!(server.statistics().refused("handshake"), 5);
}

#[tokio::test(start_paused = true)]
async fn handshake_is_closed_after_its_time_also_if_bytes_arrive() {
    // The beginning of a ClientHello of 512 bytes.
    let hello = [&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..], &[7; 32]].concat();
    for count in [0, hello.len()] {
        let server = Server::start(ServerLimits::default());
        let started = Instant::now();
        let mut stream = server.open(ADDRESS);
        for byte in &hello[..count] {
            if stream.write_all(&[*byte]).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let _ = stream.read_to_end(&mut Vec::new()).await;
        let seconds = started.elapsed().as_secs_f64();
        assert!((4.9..6.2).contains(&seconds), "{seconds}");
        server.wait_for(|now| now.refused("handshake") == 1 && now.connections == 0).await;
    }
}

#[tokio::test(start_paused = true)]
async fn client_of_another_version_of_http_is_refused() {
    let server = Server::start(ServerLimits::default());
    let mut config = client_config(&server.bundle);
    config.alpn_protocols = vec![b"h2".to_vec()];
    assert!(server.connect_by(ADDRESS, config).await.is_err());

    let mut config = client_config(&server.bundle);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let mut client = server.connect_by(ADDRESS, config).await.unwrap();
    assert_eq!(client.stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    assert!(client.post("/v1/policies/allows/0").await.is_allowed());

    for preface in ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "POST / HTTP/7.5\r\n\r\n", "\0\0\0"] {
        let started = Instant::now();
        let mut client = server.connect().await;
        client.send(preface).await;
        let end = client.end().await;
        assert!(!end.contains("200 OK"), "{preface}: {end}");
        assert!(started.elapsed() < Duration::from_secs(6), "{preface}");
    }
    // HTTP/1.0 has no keep-alive.
    let mut client = server.connect().await;
    let body = review();
    let headers = format!("Content-Type: application/json\r\nContent-Length: {}", body.len());
    let path = "/v1/policies/allows/0";
    client.send(&format!("POST {path} HTTP/1.0\r\n{headers}\r\n\r\n{body}")).await;
    let end = client.end().await;
    assert!(end.starts_with("HTTP/1.0 200") && end.contains("\"allowed\":true"), "{end}");
}
