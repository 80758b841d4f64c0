//! Ports of this machine, in real time: what pipes cannot show.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use innkeeper_admission::certificates::{Certificates, Change, Lifetimes};
use innkeeper_admission::{AdmissionServer, ServerLimits, TlsCertificate};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::harness::{Client, FakeReviewer, NAME, client_config, made_certificates, request};

const ALLOWS: &str = "/v1/policies/allows/0?timeout=10s";

/// A server that answers until the sender is dropped.
async fn start(
    certificate: watch::Receiver<TlsCertificate>,
    limits: ServerLimits,
) -> (SocketAddr, oneshot::Sender<()>, JoinHandle<()>) {
    let reviewer = Arc::new(FakeReviewer { go_on: watch::Sender::new(false) });
    let server = AdmissionServer::new(certificate, None, reviewer, limits).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(server.serve(listener, async move {
        let _ = stopped.await;
    }));
    (address, stop, task)
}

async fn connect(address: SocketAddr, bundle: &str) -> Client<TcpStream> {
    let stream = TcpStream::connect(address).await.unwrap();
    Client::handshake(stream, client_config(bundle)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_that_sends_a_refused_body_to_its_end_reads_why() {
    let certificates = made_certificates();
    let (_certificate, receiver) =
        watch::channel(TlsCertificate::new(certificates.serving()).unwrap());
    let limits = ServerLimits { body_bytes: 64 << 10, ..ServerLimits::default() };
    let (address, _stop, _task) = start(receiver, limits).await;
    for _ in 0..20 {
        let mut client = connect(address, &certificates.bundle()).await;
        client.send(&request(ALLOWS, &" ".repeat(1 << 20))).await;
        assert_eq!(client.answer().await.status, 413);
    }
}

/// The replicas, and the clients that use them in turn.
struct Clients {
    replicas: [SocketAddr; 2],
    bundle: String,
    answered: AtomicUsize,
    is_over: AtomicBool,
}

impl Clients {
    /// Sends requests one after another until the end. Goes to the other replica when one asks for
    /// the end of the connection.
    async fn run(self: Arc<Self>, number: usize) {
        let mut replica = number % 2;
        let mut client = connect(self.replicas[replica], &self.bundle).await;
        while !self.is_over.load(Ordering::Relaxed) {
            let answer = client.post(ALLOWS).await;
            assert!(answer.is_allowed());
            self.answered.fetch_add(1, Ordering::Relaxed);
            if answer.closes() {
                replica = 1 - replica;
                client = connect(self.replicas[replica], &self.bundle).await;
            }
        }
    }

    async fn wait_for_more_answers(&self, count: usize) {
        let start = self.answered.load(Ordering::Relaxed);
        let waited = tokio::time::timeout(Duration::from_mins(1), async {
            while self.answered.load(Ordering::Relaxed) < start + count {
                tokio::task::yield_now().await;
            }
        });
        assert!(waited.await.is_ok(), "fewer than {count} answers in a minute");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rotation_and_the_stop_of_a_replica_fail_no_request() {
    let names = [NAME.to_owned()];
    let certificates = made_certificates();
    let changed = |certificates: Certificates, change| {
        let now = certificates.authority_validity().made;
        certificates.change(change, &names, Lifetimes::default(), now).unwrap()
    };
    let certificates = changed(certificates, Change::Announce);
    let bundle = certificates.bundle();
    let (certificate, receiver) =
        watch::channel(TlsCertificate::new(certificates.serving()).unwrap());
    let limits = ServerLimits { drain_time: Duration::from_secs(2), ..ServerLimits::default() };
    let (first, stop, first_task) = start(receiver.clone(), limits).await;
    let (second, _stop, _task) = start(receiver, limits).await;

    let (answered, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let clients = Arc::new(Clients { replicas: [first, second], bundle, answered, is_over });
    let tasks: Vec<_> =
        (0..8).map(|number| tokio::spawn(Arc::clone(&clients).run(number))).collect();
    clients.wait_for_more_answers(200).await;
    let switched = changed(certificates, Change::Switch);
    certificate.send_replace(TlsCertificate::new(switched.serving()).unwrap());
    clients.wait_for_more_answers(200).await;
    drop(stop);
    first_task.await.unwrap();
    clients.wait_for_more_answers(200).await;
    clients.is_over.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
}
