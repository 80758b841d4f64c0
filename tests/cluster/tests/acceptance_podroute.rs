//! A scenario of podroute with real containers. Needs root; `cargo xtask test` runs it.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use anyhow::{Result, bail};
use innkeeper_cluster_tests::router::{ROUTES, Router};
use innkeeper_cluster_tests::screens::Screens;
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Kind, NodeStage, condition};
use serde_json::json;

const LABEL: (&str, &str) = ("podroute_cr", "test-podroute");

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root: cargo xtask test runs it"]
async fn podroute_of_three_replicas_answers_at_its_route_and_scales() -> Result<()> {
    let (stage, ns) = (NodeStage::new().await?, "default");
    let admin = &stage.admin;
    let mut screens = Screens::new(&stage, "podroute", "Three pods behind a Service and a Route");
    screens
        .say("Three pods that answer `OK`. The cluster is no OpenShift: there are no Routes yet.");
    screens.show("cat deploy/samples/podroute.yaml").await?;
    screens.show("kubectl apply -f deploy/samples/podroute.yaml").await?;
    let client = stage.client(ns).await?;
    client.until_page("http://podroute-service:8080/get", "OK").await?;
    stage.until_pods_ready(ns, LABEL, 3).await?;
    stage.says((Kind::PODROUTE, ns, "test-podroute"), ("Ready", "True", "AllReady")).await?;
    screens.show("kubectl get podroute,deployment,service").await?;
    screens.show("kubectl get pods -l podroute_cr=test-podroute").await?;
    screens.show("kubectl exec client -- wget -q -O - http://podroute-service:8080/get").await?;
    screens
        .show("kubectl describe podroute test-podroute | sed -n '/Conditions:/,/^  Observed/p'")
        .await?;
    screens.say("When the cluster learns of Routes, there is one without a restart.");
    for crd in admin.apply(ROUTES).await? {
        admin.until_established(&crd).await?;
    }
    let at = (Kind::ROUTE, ns, "podroute-route");
    admin.until("there is the Route", 2 * SOON, at, |_| true).await?;
    let mut router = Router::new(ns);
    let hosts = router.follow(&stage).await?;
    let [host] = &hosts[..] else { bail!("not one host: {hosts:?}") };
    assert_eq!(*host, format!("podroute-route-{ns}.apps.example.com"));
    let ask = format!("timeout 20 wget -q -O - --header 'Host: {host}' http://router/get");
    let route_answers = async || client.run(&["sh", "-c", &ask]).await;
    assert_eq!(route_answers().await?, "OK\n");
    screens.show("kubectl get routes.route.openshift.io").await?;
    screens.show(&format!("kubectl exec client -- sh -c \"{ask}\"")).await?;
    let other = ask.replace(&**host, "other.apps.example.com");
    assert!(client.run(&["sh", "-c", &other]).await.is_err(), "no Route leads there");
    screens.say("The number of pods follows.");
    for replicas in [5, 1, 3] {
        let patch = json!({"spec": {"replicas": replicas}});
        let patch = format!("kubectl patch podroute test-podroute --type merge --patch '{patch}'");
        screens.show(&patch).await?;
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
        screens.show("kubectl get podroute,deployment").await?;
    }
    screens.end()
}
