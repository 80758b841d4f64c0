//! Too many connections.

use innkeeper_admission::ServerLimits;

use crate::harness::{Client, Server, request, review};

const ALLOWS: &str = "/v1/policies/allows/0";

fn server(connections: usize, connections_per_address: usize) -> Server {
    Server::start(ServerLimits { connections, connections_per_address, ..ServerLimits::default() })
}

/// A client that has had an answer.
async fn answered(server: &Server, address: [u8; 4]) -> Client {
    let mut client = server.connect_from(address).await;
    assert!(client.post(ALLOWS).await.is_allowed());
    client
}

/// A client whose request runs.
async fn busy(server: &Server, address: [u8; 4]) -> Client {
    let running = server.statistics().requests;
    let mut client = server.connect_from(address).await;
    client.send(&request("/v1/policies/waits/0", &review())).await;
    server.wait_for(|now| now.requests == running + 1).await;
    client
}

#[tokio::test(start_paused = true)]
async fn further_connection_closes_the_oldest_that_had_no_answer() {
    let server = server(4, 100);
    let mut api_server = answered(&server, [10, 0, 0, 1]).await;
    let mut silent = server.open([10, 0, 0, 2]);
    let mut unused = server.connect_from([10, 0, 0, 2]).await;
    let mut busy = busy(&server, [10, 0, 0, 2]).await;
    server.wait_for(|now| now.connections == 4).await;

    let mut further = answered(&server, [10, 0, 0, 3]).await;
    let end = tokio::io::AsyncReadExt::read_to_end(&mut silent, &mut Vec::new()).await;
    assert_eq!(end.unwrap(), 0);
    let mut last = answered(&server, [10, 0, 0, 3]).await;
    assert_eq!(unused.end().await, "");
    server.reviewer.go_on.send_replace(true);
    assert!(busy.answer().await.is_allowed());
    for client in [&mut api_server, &mut further, &mut last] {
        assert!(client.post(ALLOWS).await.is_allowed());
    }
    assert_eq!(server.statistics().refused("connections"), 2);
}

#[tokio::test(start_paused = true)]
async fn further_connection_is_refused_when_all_others_have_a_running_request() {
    let server = server(2, 2);
    let mut first = busy(&server, [10, 0, 0, 1]).await;
    let mut second = busy(&server, [10, 0, 0, 2]).await;
    let config = crate::harness::client_config(&server.bundle);
    assert!(server.connect_by([10, 0, 0, 3], config).await.is_err());
    server.reviewer.go_on.send_replace(true);
    assert!(first.answer().await.is_allowed() && second.answer().await.is_allowed());
    // There is room as soon as one has no running request.
    answered(&server, [10, 0, 0, 3]).await;
    assert_eq!(server.statistics().refused("connections"), 2);
}

#[tokio::test(start_paused = true)]
async fn further_connection_of_one_address_closes_another_one_of_it() {
    let server = server(100, 2);
    let mut other = answered(&server, [10, 0, 0, 1]).await;
    let mut first = answered(&server, [10, 0, 0, 2]).await;
    let mut second = answered(&server, [10, 0, 0, 2]).await;
    let mut third = answered(&server, [10, 0, 0, 2]).await;
    assert_eq!(first.end().await, "");
    for client in [&mut other, &mut second, &mut third] {
        assert!(client.post(ALLOWS).await.is_allowed());
    }
}

#[tokio::test(start_paused = true)]
async fn flood_of_connections_harms_none_of_the_api_server() {
    let server = server(64, 32);
    let mut api_server = Vec::new();
    for _ in 0..25 {
        api_server.push(answered(&server, [10, 0, 0, 1]).await);
    }
    let mut flood = Vec::new();
    for number in 0..500_u16 {
        let [high, low] = number.to_be_bytes();
        flood.push(server.open([10, 1, high, low]));
    }
    // The server has accepted all when it answers a further one.
    answered(&server, [10, 0, 0, 1]).await;
    for client in &mut api_server {
        assert!(client.post(ALLOWS).await.is_allowed());
    }
    assert!(server.statistics().connections <= 64);
}
