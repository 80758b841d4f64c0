//! The story of podroute with real containers. Needs root; `cargo xtask test` runs it.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use anyhow::{Result, bail};
use innkeeper_cluster_tests::router::{ROUTES, Router};
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Kind, NodeStage, condition};
use serde_json::json;

const SAMPLE: &str = include_str!("../../../deploy/samples/podroute.yaml");
const LABEL: (&str, &str) = ("podroute_cr", "test-podroute");

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root: cargo xtask test runs it"]
async fn three_pods_run_and_the_route_answers_ok_and_their_number_follows() -> Result<()> {
    let (stage, _host, namespace) = NodeStage::serving(&[("podroute", "quay.io")]).await?;
    let (admin, ns) = (&stage.admin, &*namespace);
    admin.apply_in(ns, SAMPLE).await?;
    let client = stage.client(ns).await?;
    // On OpenShift there are Routes from the start; here they come later.
    client.until_page("http://podroute-service:8080/get", "OK").await?;
    for crd in admin.apply(ROUTES).await? {
        admin.until_established(&crd).await?;
    }
    let at = (Kind::ROUTE, ns, "podroute-route");
    admin.until("there is the Route", 2 * SOON, at, |_| true).await?;
    let mut router = Router::new(ns);
    let hosts = router.follow(&stage).await?;
    let [host] = &hosts[..] else { bail!("not one host: {hosts:?}") };
    assert_eq!(*host, format!("podroute-route-{ns}.apps.example.com"));
    let ask = format!("timeout 5 wget -q -O - --header 'Host: {host}' http://router/get");
    let route_answers = async || client.run(&["sh", "-c", &ask]).await;
    assert_eq!(route_answers().await?, "OK\n");
    let other = ask.replace(&**host, "other.apps.example.com");
    assert!(client.run(&["sh", "-c", &other]).await.is_err(), "no Route leads there");
    for replicas in [3, 5, 1] {
        let patch = json!({"spec": {"replicas": replicas}});
        admin.merge(Kind::PODROUTE, ns, "test-podroute", "kubectl-edit", &patch).await?;
        for pod in stage.until_pods_ready(ns, LABEL, replicas).await? {
            let container = &pod["spec"]["containers"][0];
            assert_eq!(container["image"], "quay.io/austincunningham/always200:latest");
            assert_eq!(container["imagePullPolicy"], "Always");
            // Each of them, not only the one that the Service happens to choose.
            let address = pod["status"]["podIP"].as_str().unwrap();
            assert_eq!(client.page(&format!("http://{address}:8080/get")).await?, "OK\n");
        }
        client.until_page("http://podroute-service:8080/get", "OK").await?;
        assert_eq!(route_answers().await?, "OK\n");
        let at = (Kind::PODROUTE, ns, "test-podroute");
        let is_ready = |one: &serde_json::Value| {
            condition(one, "Ready") == Some("True")
                && one["status"]["observedGeneration"] == one["metadata"]["generation"]
        };
        admin.until("it is ready", SOON, at, is_ready).await?;
    }
    Ok(())
}
