//! When the controllers of a real server have looked at what was written: when they have done
//! something that they can only do after it. What is made for it lies outside of the cases and is
//! gone afterwards.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, header};
use serde_json::{Value, json};

use crate::server::{Failure, Reply, Server, Wait};

/// How long a controller may take to do it.
const BOUND: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(10);
/// Where.
const PLACE: &str = "/api/v1/namespaces/default";
/// So many objects own each other in a row: more than in a case, so that they go later than those.
const ROW: usize = 8;
/// The kinds of the row, in turn: the collector learns of each kind from another watch.
const KINDS: [(&str, &str); 3] =
    [("ConfigMap", "configmaps"), ("Secret", "secrets"), ("ServiceAccount", "serviceaccounts")];
const RBAC: &str = "rbac.authorization.k8s.io";

fn send(server: &dyn Server, method: &str, path: &str, body: &Value) -> Result<Reply, Failure> {
    let request = Request::builder().method(method).uri(path);
    let request = request.header(header::CONTENT_TYPE, "application/json");
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    server.send(request.body(body)?)
}

fn make(server: &dyn Server, path: &str, body: &Value) -> Result<Value, Failure> {
    let reply = send(server, "POST", path, body)?;
    match reply.code {
        201 => Ok(reply.body),
        code => Err(format!("{path} should take a sentinel, but: {code} {}", reply.body).into()),
    }
}

fn until(what: &str, mut done: impl FnMut() -> Result<bool, Failure>) -> Result<(), Failure> {
    let deadline = Instant::now() + BOUND;
    while !done()? {
        if Instant::now() > deadline {
            return Err(format!("{what} after {} s", BOUND.as_secs()).into());
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

fn until_gone(server: &dyn Server, path: &str) -> Result<(), Failure> {
    until(&format!("{path} is still there"), || {
        Ok(send(server, "GET", path, &Value::Null)?.code == 404)
    })
}

/// Waits until the controllers of a real server have worked on what was written before.
///
/// # Errors
/// If they do not in time, or the server does not answer.
pub(crate) fn wait(server: &dyn Server, wait: Wait) -> Result<(), Failure> {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let name = format!("sentinel-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    match wait {
        Wait::Roles => roles(server, &name),
        Wait::Owners => owners(server, &name),
        Wait::Namespaces => {
            let path = format!("/api/v1/namespaces/{name}");
            make(server, "/api/v1/namespaces", &json!({"metadata": {"name": name}}))?;
            send(server, "DELETE", &path, &Value::Null)?;
            owners(server, &name)?;
            until_gone(server, &path)
        }
    }
}

/// A row of objects, whose first is deleted: the others go one after the other.
fn owners(server: &dyn Server, name: &str) -> Result<(), Failure> {
    let mut paths = Vec::new();
    let mut owner = Value::Null;
    for index in 0..ROW {
        let (kind, plural) = KINDS[index % KINDS.len()];
        let name = format!("{name}-{index}");
        let mut metadata = json!({ "name": name });
        if owner.is_object() {
            metadata["ownerReferences"] = json!([owner]);
        }
        let path = format!("{PLACE}/{plural}");
        let made = make(server, &path, &json!({ "metadata": metadata }))?;
        let uid = &made["metadata"]["uid"];
        owner = json!({"apiVersion": "v1", "kind": kind, "name": name, "uid": uid});
        paths.push(format!("{path}/{name}"));
    }
    send(server, "DELETE", &paths[0], &json!({"propagationPolicy": "Background"}))?;
    until_gone(server, &paths[ROW - 1])
}

/// Somebody who may do two things by roles of both kinds.
fn roles(server: &dyn Server, name: &str) -> Result<(), Failure> {
    let places = [
        ("Role", "namespaces/default/roles", "namespaces/default/rolebindings", "get"),
        ("ClusterRole", "clusterroles", "clusterrolebindings", "list"),
    ];
    for (kind, roles, bindings, verb) in places {
        let rule = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": [verb]});
        let made = json!({"metadata": {"name": name}, "rules": [rule]});
        make(server, &format!("/apis/{RBAC}/v1/{roles}"), &made)?;
        let subject = json!({"kind": "User", "name": name, "apiGroup": RBAC});
        let of = json!({"kind": kind, "name": name, "apiGroup": RBAC});
        let binding = json!({"metadata": {"name": name}, "subjects": [subject], "roleRef": of});
        make(server, &format!("/apis/{RBAC}/v1/{bindings}"), &binding)?;
    }
    let allowed = |verb: &str| -> Result<bool, Failure> {
        let asked = json!({"verb": verb, "resource": "configmaps", "namespace": "default"});
        let review = json!({"spec": {"user": name, "resourceAttributes": asked}});
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        Ok(make(server, path, &review)?["status"]["allowed"] == true)
    };
    until("roles allow nothing yet", || Ok(allowed("get")? && allowed("list")?))?;
    for (_, roles, bindings, _) in places {
        for list in [bindings, roles] {
            send(server, "DELETE", &format!("/apis/{RBAC}/v1/{list}/{name}"), &Value::Null)?;
        }
    }
    Ok(())
}
