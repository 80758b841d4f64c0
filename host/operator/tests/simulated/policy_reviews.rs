//! The review of a request by the active policy of a module.

mod bench;

use std::future::Future as _;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use innkeeper_admission::{AdmissionResponse, Reviewed};
use innkeeper_operator::policies::Entry;
use innkeeper_operator::policies::active_policies::REMOVED_TIME;
use innkeeper_tiny_guests::{ALLOWED, POLICY_MANIFEST, READ_RESULT, READS, SCRATCH, Tiny, get};
use serde_json::{Value, json};
use tokio::time::Instant;

use self::bench::{Replica, TIME, answer, create, failure};
use crate::support::block_on;

const DENIED: &str = r#"{"allowed":false,"message":"no","warnings":["own"]}"#;

/// A policy that ends each review with `failed` and the request as it got it.
fn repeating() -> Tiny {
    Tiny::policy(ALLOWED).review_wat(&format!(
        "(i32.store (i32.const {SCRATCH}) (i32.const 1))
         (i32.store offset=4 (i32.const {SCRATCH}) (local.get $request))
         (i32.store offset=8 (i32.const {SCRATCH}) (local.get $length))
         (return (i32.const {SCRATCH}))"
    ))
}

/// A policy that reads the ConfigMap `ns/cm` and ends with `failed` and the object, or the text of
/// the error.
fn reading() -> Tiny {
    let code = format!(
        "{get}
         (if (i32.load8_u (i32.const {READ_RESULT}))
            (then
                (i32.store offset=4 (i32.const {READ_RESULT})
                    (i32.load offset=8 (i32.const {READ_RESULT})))
                (i32.store offset=8 (i32.const {READ_RESULT})
                    (i32.load offset=12 (i32.const {READ_RESULT})))))
         (i32.store8 (i32.const {READ_RESULT}) (i32.const 1))
         (return (i32.const {READ_RESULT}))",
        get = get()
    );
    Tiny::policy(ALLOWED).importing(READS).data(SCRATCH, "v1ConfigMapnscm").review_wat(&code)
}

/// A policy that allows with this object.
fn mutating(object: &Value) -> Tiny {
    let manifest = POLICY_MANIFEST.replace("Validate", "Mutate");
    let verdict = json!({"allowed": true, "object": object});
    Tiny::policy(&verdict.to_string()).manifest(&manifest)
}

#[test]
fn unknown_policy_is_unknown_and_a_removed_one_allows_for_a_while() {
    block_on(async {
        let replica = Replica::new();
        assert!(!replica.policies.active().is_complete());
        replica.policies.active().set_complete();
        assert!(replica.policies.active().is_complete());
        assert_eq!(replica.review("m", &create()).await, Reviewed::UnknownPolicy);

        replica.activate("m", &Tiny::policy(DENIED), json!({"policy": {}})).await;
        assert!(answer(replica.review("m", &create()).await).denial.is_some());
        let beyond = replica.review_at("m", 1, &create(), TIME).await;
        assert!(answer(beyond).denial.is_some(), "an override that is gone has the Module's mode");

        replica.policies.active().remove("m", Instant::now());
        let allowed = AdmissionResponse::allowed();
        assert_eq!(answer(replica.review("m", &create()).await), allowed);
        tokio::time::sleep(REMOVED_TIME).await;
        assert_eq!(replica.review("m", &create()).await, Reviewed::UnknownPolicy);
    });
}

#[test]
fn verdict_counts_as_the_mode_of_its_webhook_says() {
    block_on(async {
        let replica = Replica::new();
        let namespaces = |env: &str| json!({"key": "env", "operator": "In", "values": [env]});
        let policy = json!({"policy": {"overrides": [
            {"namespaces": namespaces("test"), "mode": "Warn"},
            {"namespaces": namespaces("dev"), "mode": "Audit"}]}});
        replica.activate("m", &Tiny::policy(DENIED), policy).await;
        let enforced = answer(replica.review_at("m", 0, &create(), TIME).await);
        let denial = enforced.denial.unwrap();
        assert_eq!((&*denial.message, &*denial.reason, denial.code), ("no", "Forbidden", 403));
        let warned = answer(replica.review_at("m", 1, &create(), TIME).await);
        assert_eq!(warned.warnings, ["policy m would deny: no", "own"]);
        assert_eq!(warned.denial, None);
        let audited = answer(replica.review_at("m", 2, &create(), TIME).await);
        assert_eq!(audited.audit_annotations["would-deny"], "deny: no");
        assert_eq!((audited.denial.is_none(), audited.warnings.len()), (true, 0));
        for mode in ["Enforce", "Warn", "Audit"] {
            let series = format!(
                r#"innkeeper_policy_reviews_total{{decision="denied",mode="{mode}",module="m"}}"#
            );
            assert_eq!(replica.metric(&series), 1, "{series}");
        }
        let count = r#"innkeeper_policy_review_duration_seconds_count{module="m"}"#;
        assert_eq!(replica.metric(count), 3);
    });
}

#[test]
fn policy_that_traps_fails_by_name() {
    block_on(async {
        let replica = Replica::new();
        let trapping = Tiny::policy(ALLOWED).review_wat("unreachable");
        replica.activate("m", &trapping, json!({"policy": {}})).await;
        let why = failure(replica.review("m", &create()).await);
        assert!(why.starts_with("policy m failed: the guest trapped"), "{why}");
        assert!(why.ends_with("; see the log and `kubectl describe module m`"), "{why}");
        let series = |reason: &str| {
            format!(r#"innkeeper_policy_review_failures_total{{module="m",reason="{reason}"}}"#)
        };
        assert_eq!(replica.metric(&series("GuestTrapped")), 1);
        let Some(Entry::Active(policy)) = replica.policies.active().get("m", Instant::now()) else {
            panic!("no policy")
        };
        assert_eq!((policy.counts.reviewed(), policy.counts.failed()), (1, 1));
        assert!(policy.counts.example().unwrap().starts_with("the guest trapped"));

        for (tiny, reason, text) in [
            (Tiny::policy(ALLOWED).decision(1, "no \u{1b}[2J"), "Undecided", r"no \u{1b}[2J"),
            (Tiny::policy("{}"), "OutputUnreadable", "missing field `allowed`"),
            (
                Tiny::policy(r#"{"allowed":true,"object":{}}"#),
                "UnexpectedObject",
                "the policy is of the kind `Validate`",
            ),
        ] {
            replica.activate("m", &tiny, json!({"policy": {}})).await;
            let why = failure(replica.review("m", &create()).await);
            assert!(why.contains(text), "{why}");
            assert_eq!(replica.metric(&series(reason)), 1, "{reason}");
        }
        // In another mode no request fails.
        replica.activate("m", &trapping, json!({"policy": {"mode": "Warn"}})).await;
        let warned = answer(replica.review("m", &create()).await);
        assert!(warned.warnings[0].starts_with("policy m failed: the guest trapped"));
        assert_eq!(warned.denial, None);
    });
}

#[test]
fn deadline_bounds_wait_and_call() {
    block_on(async {
        let replica = Replica::new();
        let endless = Tiny::policy(ALLOWED).review_wat("(loop $l (br $l))");
        let spec = json!({"policy": {}, "limits": {"timeout": "5s"}});
        replica.activate("m", &endless, spec).await;
        // The call gets what is left before the deadline, without the time for the answer.
        let time = Duration::from_millis(150);
        let why = failure(replica.review_at("m", 0, &create(), time).await);
        assert!(why.contains("longer than 50ms and was stopped"), "{why}");
        // And no more than its limit.
        let spec = json!({"policy": {}, "limits": {"timeout": "20ms"}});
        replica.activate("m", &endless, spec).await;
        let why = failure(replica.review("m", &create()).await);
        assert!(why.contains("longer than 20ms"), "{why}");

        // Reviews of the module hold the permits that it may have.
        let permits = replica.policies.permits();
        let held = [permits.try_acquire("m", ""), permits.try_acquire("m", "")];
        assert!(held.iter().all(Option::is_some) && permits.try_acquire("m", "").is_none());
        let started = Instant::now();
        let reviewed = replica.review_at("m", 0, &create(), Duration::from_secs(2)).await;
        let Reviewed::Overloaded(why) = reviewed else { panic!("{reviewed:?}") };
        assert!(why.contains("no time is left"), "{why}");
        assert_eq!(started.elapsed(), Duration::from_millis(1_900));
        let late = replica.review_at("m", 0, &create(), Duration::from_millis(100)).await;
        assert!(matches!(late, Reviewed::Overloaded(_)), "{late:?}");
        assert!(permits.try_acquire("other", "").is_some(), "another module has its own");
    });
}

#[test]
fn review_that_waits_ends_with_the_policy_that_it_took() {
    block_on(async {
        let replica = Replica::new();
        replica.activate("m", &Tiny::policy(ALLOWED), json!({"policy": {}})).await;
        let permits = replica.policies.permits();
        let held = [permits.try_acquire("m", ""), permits.try_acquire("m", "")];
        let request = create();
        let mut waiting = pin!(replica.review("m", &request));
        let mut context = Context::from_waker(Waker::noop());
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        replica.activate("m", &Tiny::policy(DENIED), json!({"policy": {}})).await;
        drop(held);
        assert_eq!(answer(waiting.await).denial, None);
        assert!(answer(replica.review("m", &create()).await).denial.is_some());
    });
}

#[test]
fn review_ends_at_its_first_poll_also_in_a_task_that_has_used_up_its_turn() {
    block_on(async {
        let replica = Replica::new();
        replica.activate("m", &Tiny::policy(ALLOWED), json!({"policy": {}})).await;
        // tokio lets a task wait a few hundred times, and makes each further wait pend.
        let request = create();
        for number in 0..1_000 {
            let review = pin!(replica.review("m", &request));
            let polled = review.poll(&mut Context::from_waker(Waker::noop()));
            let Poll::Ready(reviewed) = polled else { panic!("review {number} waits") };
            assert_eq!(answer(reviewed).denial, None);
        }
    });
}

#[test]
fn review_of_kube_system_is_allowed_without_a_call() {
    block_on(async {
        let replica = Replica::new();
        let trapping = Tiny::policy(ALLOWED).review_wat("unreachable");
        replica.activate("m", &trapping, json!({"policy": {}})).await;
        let mut requests = vec![];
        for namespace in ["kube-system", "innkeeper-modules", "operators"] {
            let mut request = create();
            request["namespace"] = json!(namespace);
            requests.push(request);
        }
        let mut connection = create();
        connection["operation"] = json!("CONNECT");
        requests.push(connection);
        for request in &requests {
            let allowed = AdmissionResponse::allowed();
            assert_eq!(answer(replica.review("m", request).await), allowed, "{request}");
        }
        let excluded =
            r#"innkeeper_policy_reviews_total{decision="excluded",mode="Enforce",module="m"}"#;
        assert_eq!(replica.metric(excluded), 4);
    });
}

#[test]
fn policy_sees_only_what_its_account_may_read() {
    block_on(async {
        // Given a ConfigMap that the account `may` reads, and `may-not` does not.
        let replica = Replica::new();
        let rbac = "rbac.authorization.k8s.io";
        for object in [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "cm", "namespace": "ns"}, "data": {"value": "seen"}}),
            json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRole",
                "metadata": {"name": "may"}, "rules": [{"apiGroups": [""],
                    "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}]}),
            json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding",
                "metadata": {"name": "may"},
                "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "may"},
                "subjects": [{"kind": "ServiceAccount", "name": "may",
                    "namespace": "innkeeper-modules"}]}),
        ] {
            replica.api().apply(&object, "ns").await.unwrap();
        }
        // When both share the caches of one replica.
        replica.activate("may", &reading(), json!({"policy": {}})).await;
        replica.activate("may-not", &reading(), json!({"policy": {}})).await;
        // Then only the first sees it.
        let seen = failure(replica.review("may", &create()).await);
        assert!(seen.contains(r#""value":"seen""#), "{seen}");
        let unseen = failure(replica.review("may-not", &create()).await);
        assert!(!unseen.contains("seen") && unseen.contains("configmaps"), "{unseen}");
    });
}

#[test]
fn values_of_a_secret_reach_no_policy() {
    block_on(async {
        let replica = Replica::new();
        replica.activate("m", &repeating(), json!({"policy": {}, "parameters": {"p": 1}})).await;
        let secret = |password: &str| {
            let applied = json!({"data": {"p": password}}).to_string();
            json!({"metadata": {"name": "a", "annotations":
                {"kubectl.kubernetes.io/last-applied-configuration": applied}},
                "data": {"p": password}})
        };
        let mut request = create();
        request["operation"] = json!("UPDATE");
        request["resource"] = json!({"group": "", "version": "v1", "resource": "secrets"});
        request["object"] = secret("bmV3");
        request["oldObject"] = secret("b2xk");
        let text = failure(replica.review("m", &request).await);
        for value in ["bmV3", "b2xk", "last-applied"] {
            assert!(!text.contains(value), "{value} in {text}");
        }
        assert!(text.contains(r#""operation":"UPDATE""#) && text.contains(r#""username":"ann""#));
        assert!(text.contains(r#""parameters":{"p":1}"#), "{text}");
        let digests: Vec<&str> = text.split(r#""data":{"p":""#).skip(1).collect();
        assert_eq!(digests.len(), 2, "{text}");
        assert_ne!(digests[0][..16], digests[1][..16], "another value has another digest");
    });
}

#[test]
fn object_of_a_verdict_becomes_a_patch_within_the_rules() {
    block_on(async {
        let replica = Replica::new();
        let mut object = create()["object"].clone();
        object["metadata"]["labels"] = json!({"team": "a"});
        let policy = || json!({"policy": {}});
        replica.activate("m", &mutating(&object), policy()).await;
        let mut request = create();
        request["object"]["metadata"]["managedFields"] = json!([{"manager": "kubectl"}]);
        let patch = answer(replica.review("m", &request).await).patch.unwrap();
        let expected = json!([{"op": "add", "path": "/metadata/labels", "value": {"team": "a"}}]);
        assert_eq!(serde_json::from_str::<Value>(&patch).unwrap(), expected);

        replica.activate("m", &mutating(&object), json!({"policy": {"mode": "Warn"}})).await;
        let warned = answer(replica.review("m", &create()).await);
        assert_eq!(warned.warnings, ["policy m would change .metadata.labels"]);
        assert_eq!(warned.patch, None);

        // The same object is no change.
        replica.activate("m", &mutating(&create()["object"]), policy()).await;
        assert_eq!(answer(replica.review("m", &create()).await), AdmissionResponse::allowed());

        object["metadata"]["name"] = json!("b");
        replica.activate("m", &mutating(&object), policy()).await;
        let why = failure(replica.review("m", &create()).await);
        assert!(why.contains("the verdict changes metadata.name"), "{why}");
        let mut deletion = create();
        deletion["operation"] = json!("DELETE");
        deletion["object"] = Value::Null;
        let why = failure(replica.review("m", &deletion).await);
        assert!(why.contains("for DELETE"), "{why}");
    });
}
