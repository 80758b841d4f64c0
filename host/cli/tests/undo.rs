//! `innkeeper history` and `innkeeper undo` as users call them.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

// Each test file uses a part of it.
#[allow(dead_code)]
mod support;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use innkeeper_cluster::{Cluster, Env, Fence, Kube, SecretDigestKey, Settings};
use innkeeper_lab::{Api, Content};
use serde_json::{Value, json};

use support::{Files, command, done};

const PATH: &str = "/apis/apps/v1/namespaces/default/deployments/web";

/// A process that ends with the test.
struct Simulate(Child);

impl Drop for Simulate {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts `innkeeper simulate`, and returns when it has written its kubeconfig.
fn simulate(kubeconfig: &str) -> Simulate {
    let mut command = command();
    command.args(["simulate", "--freeze-time", "--kubeconfig", kubeconfig]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    lines.next().unwrap().unwrap();
    Simulate(child)
}

async fn connect(kubeconfig: &str) -> Api {
    let kube = Kube { kubeconfig: Some(kubeconfig.into()), ..Kube::default() };
    let (env, key) = (Env::real(), SecretDigestKey::new(&[]));
    let fence = Fence::open(&env);
    let cluster = Cluster::open(&kube, env, Settings::default(), key, fence).await.unwrap();
    Api::cluster(cluster.host())
}

fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": image}]}})
}

#[tokio::test]
async fn user_returns_a_primary_to_an_earlier_revision() {
    // Given a primary at its second revision.
    let files = Files::new();
    let kubeconfig = files.0.path().join("kubeconfig").to_str().unwrap().to_owned();
    let _simulate = simulate(&kubeconfig);
    let api = connect(&kubeconfig).await;
    let spec = json!({"replicas": 0, "selector": {"matchLabels": {"app": "web"}},
        "template": template("b")});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web"}, "spec": spec});
    api.apply(&deployment, "default").await.unwrap();
    let primary = api.get(PATH).await.unwrap().unwrap();
    let owner = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web",
        "uid": primary["metadata"]["uid"], "controller": true});
    let present = &primary["spec"]["template"];
    let mut earlier = present.clone();
    earlier["spec"]["containers"][0]["image"] = "a".into();
    for (number, template) in [(1, &earlier), (2, present)] {
        let annotations = json!({"innkeeper.dev/revision-field-paths": "spec.template"});
        let revision = json!({"apiVersion": "apps/v1", "kind": "ControllerRevision",
            "metadata": {"name": format!("web-{number}"), "annotations": annotations,
                "ownerReferences": [owner]},
            "revision": number, "data": {"spec": {"template": template}}});
        api.apply(&revision, "default").await.unwrap();
    }

    // When the user looks at the history, then it has both.
    let of_user = ["Deployments.apps", "web", "--kubeconfig", &kubeconfig];
    let call = |command: &str, more: &[&str]| done(&[&[command], &of_user[..], more].concat());
    let history = call("history", &[]);
    let rows: Vec<_> = history.lines().map(|line| line.split_whitespace().next()).collect();
    assert_eq!(rows, [Some("REVISION"), Some("2"), Some("1")], "{history}");
    let image = r#".spec.template.spec.containers[name="web"].image"#;
    assert!(history.contains("<present>") && history.contains(image), "{history}");

    // When the user tries an undo, then nothing changes.
    let tried = call("undo", &["--to-revision", "1", "--dry-run", "-n", "default"]);
    assert!(tried.contains("-      - image: b") && tried.contains("(dry run)"), "{tried}");
    let image = async || {
        let deployment = api.send("GET", PATH, Content::Json, &Value::Null).await.unwrap();
        deployment["spec"]["template"]["spec"]["containers"][0]["image"].clone()
    };
    assert_eq!(image().await, "b");

    // When the user gives no number, then nothing changes; the printed command line returns it.
    let shown = call("undo", &[]);
    assert!(shown.contains("Nothing has changed"), "{shown}");
    assert_eq!(image().await, "b");
    let command_line = shown.lines().last().unwrap().trim();
    let words: Vec<_> = command_line.split(' ').skip(1).collect();
    assert!(words.ends_with(&["--to-revision", "1"]), "{command_line}");
    let undone = done(&words);
    assert!(undone.contains("Deployment default/web returned to revision 1 (web-1)"), "{undone}");
    assert_eq!(image().await, "a");
}
