//! The certificates of the admission server: one leader makes them, and all replicas show them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use innkeeper_cluster::Env;
use innkeeper_lab::Api;
use innkeeper_operator::policies::certificate_reader::{ShownCertificate, read_certificates};
use innkeeper_tiny_guests::{ALLOWED, Tiny};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::support::policy_cluster::{PolicyCluster, record};
use crate::support::policy_leading::{
    Leader, Reports, SECRET, WEBHOOKS, certified, cluster, reviewing, stage, webhooks,
};
use crate::support::{Proxy, Reply, block_on, refusal};

const NAME: &str = "innkeeper-admission.innkeeper-system.svc";

#[test]
fn first_leader_makes_certificates_and_a_second_reads_them() {
    block_on(async {
        let stage = stage().await;
        let first = Leader::of_stage(&stage, [reviewing("a", "x")]);
        stage.pass(15).await;
        let secret = stage.get(SECRET).await.unwrap();
        assert!(secret["data"]["tls.key"].is_string());
        let configuration = webhooks(&stage).await;
        let bundle = &configuration["webhooks"][0]["clientConfig"]["caBundle"];
        assert_eq!(*bundle, secret["data"]["ca.crt"]);
        first.end().await;
        let second = Leader::of_stage(&stage, [reviewing("a", "x")]);
        stage.pass(30).await;
        assert_eq!(stage.get(SECRET).await.unwrap(), secret);
        assert_eq!(webhooks(&stage).await, configuration);
        second.end().await;
    });
}

#[test]
fn replica_keeps_its_certificate_while_the_secret_cannot_be_read() {
    block_on(async {
        let stage = stage().await;
        let leader = Leader::of_stage(&stage, []);
        let (sender, shown) = watch::channel(None);
        let cluster = cluster(stage.simulator(), stage.proxy());
        let reading = read_certificates(cluster.host(), sender, leader.stop.subscribe());
        let reading = cluster.env().spawn("read", reading);
        stage.pass(30).await;
        let first = shown.borrow().as_ref().unwrap().id.clone();
        stage.proxy().intercept(|sent| {
            if sent.path == SECRET { refusal(403, "Forbidden", "no") } else { Reply::Forward }
        });
        stage.pass(60).await;
        assert_eq!(shown.borrow().as_ref().unwrap().id, first);
        stage.proxy().forward();
        stage.api().delete(SECRET).await.unwrap();
        stage.pass(60).await;
        assert_ne!(shown.borrow().as_ref().unwrap().id, first, "the leader has made another one");
        leader.end().await;
        assert!(reading.await.is_some());
    });
}

/// A member of an object, decoded from base64.
fn decoded(text: &Value) -> String {
    String::from_utf8(STANDARD.decode(text.as_str().unwrap()).unwrap()).unwrap()
}

/// Whether a client with this bundle trusts this certificate now.
fn is_trusted(bundle: &str, certificate: &str, env: &Env) -> bool {
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        roots.add(root.unwrap()).unwrap();
    }
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    let now = Duration::from_secs(env.now().as_second().try_into().unwrap());
    let (name, now) = (ServerName::try_from(NAME).unwrap(), UnixTime::since_unix_epoch(now));
    verifier.build().unwrap().verify_server_cert(&certificate, &[], &name, &[], now).is_ok()
}

/// Two replicas: the first one shows what the Secret has, and the second one is a minute behind.
struct Shown {
    newest: watch::Receiver<Option<ShownCertificate>>,
    /// What the first one showed at each step.
    history: Vec<String>,
    /// The certificates by id, as PEM.
    texts: BTreeMap<String, String>,
}

impl Shown {
    /// What both show now.
    async fn step(&mut self, api: &Api) -> [String; 2] {
        let id = self.newest.borrow().as_ref().unwrap().id.clone();
        if !self.texts.contains_key(&id) {
            let secret = api.get(SECRET).await.unwrap().unwrap();
            self.texts.insert(id.clone(), decoded(&secret["data"]["tls.crt"]));
        }
        self.history.push(id.clone());
        let behind = self.history.len().saturating_sub(7);
        [id, self.history[behind].clone()]
    }
}

#[test]
fn rotation_waits_for_bundle_and_replicas() {
    block_on(async {
        // Given a policy with two replicas, one of which is always a minute behind.
        let of_cluster = PolicyCluster::new().await;
        of_cluster.apply(&innkeeper_modules::crd()).await;
        of_cluster
            .apply(&json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
                "metadata": {"name": "scripts"},
                "spec": {"source": {"configMap": {"name": "scripts"}},
                    "serviceAccountName": "scripts", "policy": {}}}))
            .await;
        let api = &of_cluster.api;
        let module = api.get("/apis/innkeeper.dev/v1alpha1/modules/scripts").await.unwrap();
        let mut record = record("scripts", &Tiny::policy(ALLOWED).component(), &json!({}));
        record.module_uid = module.unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
        of_cluster.put_record(&record).await;
        let cluster = cluster(&of_cluster.simulator, &Proxy::new(of_cluster.simulator.clone()));
        let env = cluster.env();
        let (sender, newest) = watch::channel(None);
        let mut shown = Shown { newest, history: Vec::new(), texts: BTreeMap::new() };
        let mut bundles = BTreeSet::new();
        let mut reports = Reports::from([reviewing("a", "x"), reviewing("b", "x")]);

        // When more than a year passes, of which a leader is there for five minutes every ten
        // days: nobody could wait for a year of them.
        for window in 0..42 {
            let leader = Leader::start(&cluster, api, reports.clone());
            let reading =
                read_certificates(cluster.host(), sender.clone(), leader.stop.subscribe());
            let reading = env.spawn("read", reading);
            env.sleep(Duration::from_secs(20)).await;
            for step in 0..30 {
                let [a, b] = shown.step(api).await;
                let live = api.get(WEBHOOKS).await.unwrap().unwrap();
                let bundle = decoded(&live["webhooks"][0]["clientConfig"]["caBundle"]);

                // Then the configuration always trusts both replicas.
                for id in [&a, &b] {
                    let is_trusted = is_trusted(&bundle, &shown.texts[id], env);
                    assert!(is_trusted, "window {window}, step {step}: {id}");
                }
                bundles.insert(bundle);
                reports = Reports::from([certified("a", &a, "x"), certified("b", &b, "x")]);
                leader.set_replicas(reports.clone());
                env.sleep(Duration::from_secs(10)).await;
            }
            leader.end().await;
            assert!(reading.await.is_some());
            env.sleep(Duration::from_hours(10 * 24)).await;
        }
        // Then there were two authorities, and both at the same time for a while.
        assert!(bundles.len() >= 3, "{}", bundles.len());
        assert!(shown.texts.len() >= 6, "{}", shown.texts.len());
        assert!(bundles.iter().all(|bundle| bundle.matches("BEGIN CERT").count() <= 2));
    });
}
