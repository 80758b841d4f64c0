//! The end of the server without a failed request.

use std::time::Duration;

use innkeeper_admission::ServerLimits;
use tokio::time::{Instant, sleep};

use crate::harness::{Server, request, review};

const ALLOWS: &str = "/v1/policies/allows/0";

#[tokio::test(start_paused = true)]
async fn stopped_server_answers_and_asks_clients_to_close() {
    let mut server = Server::start(ServerLimits::default());
    let mut client = server.connect().await;
    assert!(!client.post(ALLOWS).await.closes());
    let started = Instant::now();
    server.stop();
    sleep(Duration::from_secs(1)).await;
    // On the connection from before, and on one that a client makes later.
    for mut client in [client, server.connect().await] {
        let answer = client.post(ALLOWS).await;
        assert!(answer.is_allowed() && answer.closes(), "{answer:?}");
        assert_eq!(client.end().await, "");
    }
    assert!(started.elapsed() < Duration::from_secs(2));
    assert!(!server.task.is_finished());
    (&mut server.task).await.unwrap();
    assert_eq!(started.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn idle_connections_are_closed_only_at_the_end_of_the_drain() {
    let mut server = Server::start(ServerLimits::default());
    let (mut used, mut unused) = (server.connect().await, server.connect().await);
    assert!(used.post(ALLOWS).await.is_allowed());
    server.stop();
    let started = Instant::now();
    assert_eq!(used.end().await, "");
    assert_eq!(started.elapsed().as_secs(), 10);
    assert_eq!(unused.end().await, "");
    assert!(started.elapsed() < Duration::from_secs(13));
    drop((used, unused));
    (&mut server.task).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn running_request_is_answered_after_the_drain() {
    let mut server = Server::start(ServerLimits::default());
    let mut client = server.connect().await;
    client.send(&request("/v1/policies/waits/0?timeout=30s", &review())).await;
    server.wait_for(|now| now.requests == 1).await;
    server.stop();
    sleep(Duration::from_secs(20)).await;
    assert!(!server.task.is_finished());
    server.reviewer.go_on.send_replace(true);
    let answer = client.answer().await;
    assert!(answer.is_allowed() && answer.closes(), "{answer:?}");
    drop(client);
    (&mut server.task).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn clients_that_hold_on_cannot_delay_the_end() {
    let mut server = Server::start(ServerLimits::default());
    let silent = server.open([10, 0, 0, 2]);
    let mut clients = Vec::new();
    for sent in ["", "POST /v1", &request("/v1/policies/hangs/0?timeout=30s", &review())] {
        let mut client = server.connect().await;
        client.send(sent).await;
        clients.push(client);
    }
    server.wait_for(|now| now.requests == 1).await;
    let started = Instant::now();
    server.stop();
    (&mut server.task).await.unwrap();
    let seconds = started.elapsed().as_secs();
    assert!((29..33).contains(&seconds), "{seconds}");
    drop((silent, clients));
}
