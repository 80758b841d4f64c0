//! Reviews: paths, answers, deadlines.

use std::time::Duration;

use innkeeper_admission::ServerLimits;
use tokio::time::Instant;

use crate::harness::{Server, request, review};

fn server() -> Server {
    Server::start(ServerLimits::default())
}

#[tokio::test(start_paused = true)]
async fn requests_of_one_connection_are_reviewed_one_after_another() {
    let server = server();
    let mut client = server.connect().await;
    for _ in 0..3 {
        let answer = client.post("/v1/policies/allows/0?timeout=10s").await;
        assert!(answer.is_allowed() && !answer.closes());
        assert_eq!(answer.response()["uid"], "705ab4f5-6393-11e8-b7cc-42010a800002");
        let denied = client.post("/v1/policies/denies/2").await.response();
        assert_eq!(denied["allowed"], false);
        assert_eq!(denied["status"]["message"], "web by webhook 2");
    }
    server.wait_for(|now| now.requests == 0).await;
    let now = server.statistics();
    assert!(now.connections == 1 && now.refused.is_empty(), "{now:?}");
}

#[tokio::test(start_paused = true)]
async fn requests_sent_together_are_answered_in_their_order() {
    let server = server();
    let mut client = server.connect().await;
    let allows = request("/v1/policies/allows/0", &review());
    client.send(&format!("{allows}{}{allows}", request("/v1/policies/x/0", &review()))).await;
    let statuses = [client.answer().await, client.answer().await, client.answer().await];
    assert_eq!(statuses.map(|answer| answer.status), [200, 404, 200]);
}

#[tokio::test(start_paused = true)]
async fn review_has_the_time_of_the_query() {
    let server = server();
    let mut client = server.connect().await;
    for (query, seconds) in [("", "10 s"), ("?timeout=3s", "3 s"), ("?timeout=5m0s", "30 s")] {
        let answer = client.post(&format!("/v1/policies/times/0{query}")).await;
        assert_eq!(answer.response()["status"]["message"], seconds, "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn review_that_hangs_is_answered_at_its_deadline_and_its_connection_goes_on() {
    let server = server();
    let mut client = server.connect().await;
    let started = Instant::now();
    let answer = client.post("/v1/policies/hangs/0?timeout=3s").await;
    assert_eq!(answer.status, 503);
    assert!(answer.body.contains("within 3s"), "{}", answer.body);
    assert!((2_990..3_100).contains(&started.elapsed().as_millis()), "{:?}", started.elapsed());
    assert!(client.post("/v1/policies/allows/0").await.is_allowed());
    assert_eq!(server.statistics().refused("deadline_exceeded"), 1);
}

#[tokio::test(start_paused = true)]
async fn review_of_a_client_that_left_is_given_up() {
    let server = server();
    let mut client = server.connect().await;
    client.send(&request("/v1/policies/hangs/0", &review())).await;
    server.wait_for(|now| now.requests == 1).await;
    let started = Instant::now();
    drop(client);
    server.wait_for(|now| now.requests == 0 && now.connections == 0).await;
    assert!(started.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn panic_of_a_review_ends_its_connection_only() {
    let server = server();
    let (mut other, mut client) = (server.connect().await, server.connect().await);
    client.send(&request("/v1/policies/panics/0", &review())).await;
    assert_eq!(client.end().await, "");
    assert!(other.post("/v1/policies/allows/0").await.is_allowed());
    server.wait_for(|now| now.requests == 0 && now.connections == 1).await;
}

#[tokio::test(start_paused = true)]
async fn request_without_a_verdict_is_refused_by_status_and_sentence() {
    let server = server();
    let mut client = server.connect().await;
    let post = request("/v1/policies/allows/0", &review());
    let at = |path| request(path, &review());
    let with = |from: &str, to: &str| post.replacen(from, to, 1);
    let old = review().replace("admission.k8s.io/v1", "admission.k8s.io/v1beta1");
    let of_length = |body: &str| request("/v1/policies/allows/0", body);
    // A request whose body is not read closes its connection.
    for (sent, status, text, closes) in [
        (at("/"), 404, "/v1/policies/<module>/<index>", true),
        (at("/v1/policies/allows"), 404, "/v1/policies/<module>/<index>", true),
        (at("/v1/policies/allows/x"), 404, "/v1/policies/<module>/<index>", true),
        (at("/v1/policies/absent/7"), 404, "Module \"absent\" with index 7", false),
        (with("POST", "PUT"), 405, "send an AdmissionReview by POST", true),
        (with("application/json", "text/yaml"), 415, "\"text/yaml\"", true),
        (with("Content-Type", "X-Type"), 415, "send application/json", true),
        (with("Host", "Content-Encoding: gzip\r\nHost"), 415, "\"gzip\"", true),
        (at("/v1/policies/allows/0?timeout=ten"), 400, "timeout=10s", true),
        (of_length("hello"), 400, "no AdmissionReview", false),
        (of_length(""), 400, "no AdmissionReview", false),
        (of_length(&old), 400, "\"admission.k8s.io/v1beta1\"", false),
        (of_length(&"[".repeat(100_000)), 400, "no AdmissionReview", false),
        (at("/v1/policies/overloaded/0"), 503, "64 reviews wait already", false),
        (at("/v1/policies/fails/0"), 500, "policy labels failed: out of fuel", false),
    ] {
        client.send(&sent).await;
        let answer = client.answer().await;
        let case = sent.chars().take(200).collect::<String>();
        assert_eq!((answer.status, answer.closes()), (status, closes), "{case}: {answer:?}");
        assert!(answer.body.contains(text) && answer.body.len() < 400, "{case}: {answer:?}");
        assert!(answer.head.contains("content-type: text/plain"), "{case}: {answer:?}");
        if closes {
            assert_eq!(client.end().await, "");
            client = server.connect().await;
        }
    }
    let accepted = "application/JSON; charset=utf-8";
    client.send(&with("application/json", accepted)).await;
    assert!(client.answer().await.is_allowed());
    let refused = server.statistics().refused;
    assert_eq!(refused.values().sum::<u64>(), 15, "{refused:?}");
}
