//! Requests that are slow or large.

use std::time::Duration;

use innkeeper_admission::ServerLimits;
use tokio::io::AsyncWriteExt as _;
use tokio::time::{Instant, sleep};

use crate::harness::{Client, Server, request, review};

const ALLOWS: &str = "/v1/policies/allows/0";

/// The head of a request whose body has this many bytes.
fn head_of(bytes: usize) -> String {
    request(ALLOWS, "").replace("Content-Length: 0", &format!("Content-Length: {bytes}"))
}

/// Sends a byte each second until the server closes the connection.
async fn send_slowly(client: &mut Client, text: &str) {
    for byte in text.bytes() {
        if client.stream.write_all(&[byte]).await.is_err() || client.stream.flush().await.is_err() {
            break;
        }
        sleep(Duration::from_secs(1)).await;
    }
}

/// Waits for the end of a connection. Gives how long it took, in seconds, and what came.
async fn end_of(client: &mut Client) -> (f64, String) {
    let started = Instant::now();
    let rest = client.end().await;
    (started.elapsed().as_secs_f64(), rest)
}

#[tokio::test(start_paused = true)]
async fn head_that_arrives_slowly_is_closed_after_its_time() {
    let server = Server::start(ServerLimits::default());
    let mut client = server.connect().await;
    // The wait for the first byte does not count.
    sleep(Duration::from_mins(1)).await;
    let started = Instant::now();
    send_slowly(&mut client, &request(ALLOWS, &review())[..20]).await;
    assert_eq!(client.end().await, "");
    let seconds = started.elapsed().as_secs_f64();
    assert!((4.9..6.1).contains(&seconds), "{seconds}");
    server.wait_for(|now| now.connections == 0).await;
    assert_eq!(server.statistics().refused("head"), 1);
}

#[tokio::test(start_paused = true)]
async fn head_of_a_later_request_is_closed_after_its_time_too() {
    let server = Server::start(ServerLimits::default());
    let mut client = server.connect().await;
    assert!(client.post(ALLOWS).await.is_allowed());
    sleep(Duration::from_mins(1)).await;
    client.send("POST /v1").await;
    let (seconds, rest) = end_of(&mut client).await;
    assert!((4.9..5.1).contains(&seconds) && rest.is_empty(), "{seconds}: {rest}");
}

#[tokio::test(start_paused = true)]
async fn idle_connection_is_kept_longer_than_the_api_server_keeps_it_then_closed() {
    let server = Server::start(ServerLimits::default());
    let (mut used, mut unused) = (server.connect().await, server.connect().await);
    sleep(Duration::from_secs(115)).await;
    assert!(used.post(ALLOWS).await.is_allowed());
    let (seconds, rest) = end_of(&mut unused).await;
    assert!((4.9..7.1).contains(&seconds) && rest.is_empty(), "{seconds}: {rest}");
    drop(unused);
    // 120 s after the answer.
    let (seconds, rest) = end_of(&mut used).await;
    assert!((112.0..116.0).contains(&seconds) && rest.is_empty(), "{seconds}: {rest}");
    drop(used);
    server.wait_for(|now| now.connections == 0).await;
    assert!(server.statistics().refused.is_empty());
}

#[tokio::test(start_paused = true)]
async fn head_that_is_too_large_is_refused() {
    let server = Server::start(ServerLimits::default());
    let long = format!("X: {}\r\n", "a".repeat(17 << 10));
    for headers in [long, "X: y\r\n".repeat(65)] {
        let client = server.connect().await;
        let head = request(ALLOWS, "").replacen("Host", &format!("{headers}Host"), 1);
        let (mut read, mut write) = tokio::io::split(client.stream);
        // The server answers before it has read all.
        let sent = tokio::spawn(async move {
            let _ = write.write_all(head.as_bytes()).await;
            let _ = write.flush().await;
        });
        let mut answer = Vec::new();
        let _ = tokio::io::AsyncReadExt::read_to_end(&mut read, &mut answer).await;
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
        sent.abort();
    }
    server.wait_for(|now| now.refused("head") == 2).await;
}

#[tokio::test(start_paused = true)]
async fn body_that_arrives_slowly_is_refused_after_its_time() {
    let server = Server::start(ServerLimits::default());
    // By bytes; not at all; and with a shorter time of its own.
    for (query, sent, seconds) in [("", 3, 5), ("", 0, 5), ("?timeout=2s", 1, 2)] {
        let mut client = server.connect().await;
        let started = Instant::now();
        client.send(&head_of(1000).replace(ALLOWS, &format!("{ALLOWS}{query}"))).await;
        send_slowly(&mut client, &review()[..sent]).await;
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.closes()), (408, true), "{answer:?}");
        assert!(answer.body.contains(&format!("within {seconds}s")), "{answer:?}");
        assert_eq!(started.elapsed().as_secs(), seconds);
        assert_eq!(client.end().await, "");
    }
    assert_eq!(server.statistics().refused("body_too_slow"), 3);
}

#[tokio::test(start_paused = true)]
async fn body_of_many_slow_chunks_is_refused_after_its_time() {
    let server = Server::start(ServerLimits::default());
    let mut client = server.connect().await;
    let chunked = "Transfer-Encoding: chunked";
    let started = Instant::now();
    client.send(&request(ALLOWS, "").replace("Content-Length: 0", chunked)).await;
    send_slowly(&mut client, "1\r\n").await;
    assert_eq!(client.answer().await.status, 408);
    assert_eq!(started.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn body_that_is_announced_too_large_is_refused_before_it_is_read() {
    let limits = ServerLimits::default();
    let server = Server::start(limits);
    for bytes in [limits.body_bytes + 1, usize::MAX >> 1] {
        let mut client = server.connect().await;
        client.send(&head_of(bytes)).await;
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.closes()), (413, true), "{answer:?}");
        assert!(answer.body.contains("more than 8388608 bytes"), "{answer:?}");
    }
    assert_eq!(server.statistics().refused("body_too_large"), 2);
}

#[tokio::test(start_paused = true)]
async fn body_without_a_length_is_refused_when_it_gets_too_large_and_the_answer_arrives() {
    let server = Server::start(ServerLimits { body_bytes: 1 << 20, ..ServerLimits::default() });
    let mut client = server.connect().await;
    let chunked = "Transfer-Encoding: chunked";
    client.send(&request(ALLOWS, "").replace("Content-Length: 0", chunked)).await;
    let (mut read, mut write) = tokio::io::split(client.stream);
    // A client that sends all before it reads.
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x1_0000));
    let sent = async {
        for _ in 0..24 {
            write.write_all(chunk.as_bytes()).await?;
        }
        write.flush().await
    };
    sent.await.expect("the server takes what is under way");
    let mut answer = Vec::new();
    let _ = tokio::io::AsyncReadExt::read_to_end(&mut read, &mut answer).await;
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn refused_client_that_sends_without_end_is_closed() {
    let server = Server::start(ServerLimits::default());
    let mut client = server.connect().await;
    let started = Instant::now();
    client.send(&head_of(usize::MAX >> 1)).await;
    let mut sent = Ok(());
    while sent.is_ok() {
        sent = client.stream.write_all(&[b' '; 1024]).await;
        sleep(Duration::from_millis(10)).await;
    }
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    server.wait_for(|now| now.connections == 0).await;
}

#[tokio::test(start_paused = true)]
async fn bodies_beyond_the_memory_for_them_are_refused_until_there_is_room() {
    let body_bytes = review().len();
    let limits = ServerLimits {
        all_bodies_bytes: 2 * body_bytes + 10,
        all_bodies_bytes_per_address: body_bytes + 10,
        ..ServerLimits::default()
    };
    let server = Server::start(limits);
    let waits = request("/v1/policies/waits/0", &review());
    let mut first = server.connect_from([10, 0, 0, 1]).await;
    first.send(&waits).await;
    server.wait_for(|now| now.requests == 1).await;
    // The address of the first has its part; another address has one too.
    let mut second = server.connect_from([10, 0, 0, 1]).await;
    let refused = second.post(ALLOWS).await;
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.body.contains("send the request later"), "{refused:?}");
    assert!(refused.head.contains("retry-after: 1\r\n"), "{refused:?}");
    let mut third = server.connect_from([10, 0, 0, 2]).await;
    third.send(&waits).await;
    server.wait_for(|now| now.requests == 2).await;
    let mut fourth = server.connect_from([10, 0, 0, 3]).await;
    assert_eq!(fourth.post(ALLOWS).await.status, 503);
    assert_eq!(server.statistics().refused("bodies_full"), 2);

    server.reviewer.go_on.send_replace(true);
    assert!(first.answer().await.is_allowed() && third.answer().await.is_allowed());
    let mut fifth = server.connect_from([10, 0, 0, 1]).await;
    assert!(fifth.post(ALLOWS).await.is_allowed());
}

#[tokio::test(start_paused = true)]
async fn announced_bodies_take_no_memory_from_others() {
    let limits = ServerLimits::default();
    let server = Server::start(limits);
    let mut announced = Vec::new();
    for _ in 0..20 {
        let mut client = server.connect().await;
        client.send(&head_of(limits.body_bytes)).await;
        announced.push(client);
    }
    server.wait_for(|now| now.requests == 20).await;
    assert!(server.connect().await.post(ALLOWS).await.is_allowed());
}

#[tokio::test(start_paused = true)]
async fn client_that_does_not_read_its_answers_is_closed_after_the_idle_time() {
    let server = Server::start(ServerLimits::default());
    let mut client = server.connect().await;
    let many = request(ALLOWS, &review()).repeat(100);
    let started = Instant::now();
    // The pipe back is full long before all are sent.
    let _ = client.stream.write_all(many.as_bytes()).await;
    server.wait_for(|now| now.connections == 0).await;
    let seconds = started.elapsed().as_secs();
    assert!((119..130).contains(&seconds), "{seconds}");
}
