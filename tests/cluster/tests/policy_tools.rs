//! The tools of the tests of policies, without a cluster.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use innkeeper_cluster_tests::numbered_policy::number;
use innkeeper_cluster_tests::{AdmissionService, Answer, Load, eventually, quantile};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const BOUND: Duration = Duration::from_mins(1);

/// A server that answers each connection with a text and closes it.
async fn server(text: &'static str) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 256]).await;
            let _ = stream.write_all(text.as_bytes()).await;
        }
    });
    address
}

/// What a client gets from a connection to the Service.
async fn answered(service: &AdmissionService) -> String {
    let mut stream = TcpStream::connect(service.address()).await.unwrap();
    let mut text = String::new();
    let _ = stream.write_all(b"?").await;
    let _ = stream.read_to_string(&mut text).await;
    text
}

#[tokio::test]
async fn connections_go_in_turn_to_the_replicas_that_are_ready() {
    let ready = server("HTTP/1.1 200 OK\r\n\r\n").await;
    let unready = server("HTTP/1.1 503 Service Unavailable\r\n\r\n").await;
    let service = AdmissionService::start().await.unwrap();
    service.join("a", server("a").await, ready);
    service.join("b", server("b").await, unready);
    service.join("c", server("c").await, ready);
    eventually("two are ready", BOUND, async || {
        let ready = service.ready();
        Ok(if ready == ["a", "c"] { Ok(()) } else { Err(format!("{ready:?}")) })
    })
    .await
    .unwrap();
    let mut answers = [answered(&service).await, answered(&service).await];
    answers.sort();
    assert_eq!(answers, ["a", "c"]);
    service.leave("a");
    for _ in 0..3 {
        assert_eq!(answered(&service).await, "c");
    }
    service.leave("c");
    assert_eq!(answered(&service).await, "");
}

#[tokio::test]
async fn load_counts_and_names_each_request_that_fails() {
    let load = Load::start(1_000, 4, async |number| {
        if number % 8 == 7 { Err(format!("it is {number}")) } else { Ok(()) }
    });
    eventually("two requests fail", BOUND, async || {
        let (failed, _) = load.failed();
        Ok(if failed >= 2 { Ok(()) } else { Err(failed.to_string()) })
    })
    .await
    .unwrap();
    let figures = load.end().await;
    assert!(figures.requests >= 15, "{figures:?}");
    assert!(figures.failures[0].starts_with("request 7 at "), "{figures:?}");
    assert!(figures.failures.iter().any(|text| text.ends_with("it is 15")), "{figures:?}");
}

#[test]
fn quantile_is_the_time_within_which_a_part_lies() {
    let times: Vec<_> = (1..=100).map(Duration::from_millis).collect();
    assert_eq!(quantile(&times, 0.5), Duration::from_millis(51));
    assert_eq!(quantile(&times, 0.99), Duration::from_millis(100));
    assert_eq!(quantile(&[], 0.99), Duration::ZERO);
}

fn answer(code: u16, message: &str, warnings: &[&str]) -> Answer {
    let warnings = warnings.iter().map(|&warning| warning.to_owned()).collect();
    Answer { code, message: message.to_owned(), warnings, body: Value::Null }
}

#[test]
fn answer_has_the_number_of_its_revision_or_is_wrong() {
    let denial = "admission webhook \"a\" denied the request: revision 7";
    assert_eq!(number(&answer(403, denial, &[]), true), Ok(7));
    assert_eq!(number(&answer(201, "", &["revision 8"]), false), Ok(8));
    for (wrong, is_forbidden) in [
        (answer(403, denial, &[]), false),
        (answer(201, "", &["revision 8"]), true),
        (answer(201, "", &[]), false),
        (answer(500, "failed calling webhook", &[]), true),
        (answer(403, "admission webhook \"a\" denied the request: no", &[]), true),
    ] {
        assert!(number(&wrong, is_forbidden).is_err(), "{wrong:?}");
    }
}
