//! Policies: what they get, what they return, and how tests ask them.

use innkeeper_sdk::kinds::{ConfigMap, Deployment, Namespace};
use innkeeper_sdk::serde_json::{Value, json};
use innkeeper_sdk::testing::{FakeReader, ReviewScenario};
use innkeeper_sdk::{
    Context, Describe, Desired, Manifest, Metadata, Observed, Operation, Outcome, RawVerdict,
    Reconciler, RequestRule, Review, Reviewer, RuleScope, Verdict, describe_policy_text, kind,
    review_text,
};
use serde::Deserialize;

kind!(Site, "example.com/v1", "sites");

/// Denies a Deployment with more replicas than the ConfigMap `limits` of its namespace says.
struct Limits;

#[derive(Deserialize)]
struct AnyObject {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
}

#[derive(Default, Deserialize)]
struct Spec {
    #[serde(default)]
    replicas: u32,
}

#[derive(Deserialize)]
struct Parameters {
    #[serde(default)]
    exempt: Vec<String>,
}

kind!(Resource for ReadLimits = "ConfigMap", "v1", "configmaps");

#[derive(Deserialize)]
struct ReadLimits {
    data: std::collections::BTreeMap<String, String>,
}

impl Limits {
    fn decide(context: &Context, request: &Review<AnyObject>) -> Result<Verdict, Verdict> {
        let parameters: Parameters = request.parameters()?;
        if parameters.exempt.contains(&request.user().username) {
            return Ok(Verdict::allow().warn("limits do not count for you"));
        }
        let Some(object) = request.object() else { return Ok(Verdict::allow()) };
        let Some(limits) = context.find::<ReadLimits>(request.namespace(), "limits")? else {
            return Ok(Verdict::allow().audit("limits", "none"));
        };
        let most = limits.object.data["replicas"].parse().unwrap_or(0);
        if object.spec.replicas <= most {
            return Ok(Verdict::allow());
        }
        let name = &object.metadata.name;
        Ok(Verdict::deny(format!("{name} has more than {most} replicas; ask for a higher limit"))
            .cause("spec.replicas", format!("is more than {most}")))
    }
}

impl Reviewer for Limits {
    type Object = AnyObject;

    fn describe() -> Manifest {
        Describe::validating_policy("limits", "1.0.0")
            .rule(RequestRule::of::<Deployment>())
            .rule(RequestRule::of::<Deployment>().subresource("scale").on([Operation::Update]))
            .matches("not-mine", "request.userInfo.username != 'me'")
            .reads::<ConfigMap>()
            .parameters(json!({"type": "object"}))
            .manifest()
    }

    fn review(context: &Context, request: &Review<AnyObject>) -> Verdict {
        Self::decide(context, request).unwrap_or_else(|verdict| verdict)
    }
}

/// Sets the label `owner` of each Namespace to the user that creates it.
struct Owners;

impl Reviewer for Owners {
    type Object = Value;

    fn describe() -> Manifest {
        let namespaces = RequestRule::of::<Namespace>().on([Operation::Create]);
        Describe::mutating_policy("owners", "1.0.0")
            .rule(namespaces.scope(RuleScope::Cluster))
            .reinvoked()
            .manifest()
    }

    fn review(_: &Context, request: &Review<Value>) -> Verdict {
        match request.raw() {
            Ok(mut object) => {
                object["metadata"]["labels"]["owner"] = request.user().username.clone().into();
                Verdict::change(object)
            }
            Err(failed) => failed,
        }
    }
}

innkeeper_sdk::export!(reviewer: Owners);

/// Reconciles and reviews.
struct Both;

impl Reconciler for Both {
    type Primary = innkeeper_sdk::Raw<Site>;

    fn describe() -> Manifest {
        Describe::reconciler_of::<Site>("both", "2.0.0")
            .reads::<ConfigMap>()
            .and_policy(Limits::describe())
            .manifest()
    }

    fn reconcile(_: &Context, _: &Observed<Self::Primary>) -> Outcome {
        Desired::new().complete()
    }
}

innkeeper_sdk::export!(reconciler: Both, reviewer: Limits);

fn limits() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"replicas": "3"},
        "metadata": {"name": "limits", "namespace": "default"}})
}

fn with_replicas(replicas: u32) -> ReviewScenario<Limits> {
    ReviewScenario::create::<Deployment>(json!({"spec": {"replicas": replicas, "paused": true}}))
}

#[test]
fn review_test_harness_reads_other_objects() {
    with_replicas(4).run().is_allowed().audits("limits", "none");
    with_replicas(3).with_object(limits()).run().is_allowed();
    with_replicas(4)
        .with_object(limits())
        .run()
        .is_denied("example has more than 3 replicas")
        .has_cause("spec.replicas");
    let exempt = json!({"exempt": ["ann"]});
    let scenario = with_replicas(4).with_object(limits()).parameters(exempt);
    scenario.run().is_denied("ask for a higher limit");
    scenario.by("ann").run().is_allowed().warns("do not count for you");
}

#[test]
fn review_fails_when_a_read_or_the_parameters_fail() {
    with_replicas(1).deny_reads::<ConfigMap>().run().is_failed("get ConfigMap (v1) in default");
    let parameters = json!({"exempt": "ann"});
    with_replicas(1).parameters(parameters).run().is_failed("spec.parameters of the Module: ");
}

#[test]
fn request_that_no_rule_matches_is_not_reviewed() {
    let object = || json!({"spec": {"replicas": 9}});
    ReviewScenario::<Limits>::create::<Site>(object()).run().is_not_reviewed();
    ReviewScenario::<Limits>::delete::<Deployment>(object()).run().is_not_reviewed();
    let scaled = ReviewScenario::<Limits>::update::<Deployment>(json!({}), object());
    scaled.with_object(limits()).subresource("scale").run().is_denied("more than 3");
}

#[test]
fn change_keeps_unknown_fields() {
    let namespace = json!({"spec": {"finalizers": ["kubernetes"]}, "unknown": [1, 2]});
    let run = ReviewScenario::<Owners>::create::<Namespace>(namespace).by("ann").run();
    run.is_allowed()
        .with("/metadata/labels/owner", "ann")
        .with("/unknown", json!([1, 2]))
        .with("/spec/finalizers/0", "kubernetes");
}

#[test]
#[should_panic(expected = "that it has changed before")]
fn policy_that_changes_its_own_change_fails_its_test() {
    struct Counts;

    impl Reviewer for Counts {
        type Object = Value;

        fn describe() -> Manifest {
            Owners::describe()
        }

        fn review(_: &Context, request: &Review<Value>) -> Verdict {
            let mut object = request.raw().unwrap();
            let count = object["data"]["count"].as_i64().unwrap_or_default();
            object["data"]["count"] = (count + 1).into();
            Verdict::change(object)
        }
    }

    ReviewScenario::<Counts>::create::<Namespace>(json!({})).run();
}

#[test]
#[should_panic(expected = "of apiVersion, kind and metadata, a policy changes only labels")]
fn policy_that_renames_an_object_fails_its_test() {
    struct Renames;

    impl Reviewer for Renames {
        type Object = Value;

        fn describe() -> Manifest {
            Owners::describe()
        }

        fn review(_: &Context, request: &Review<Value>) -> Verdict {
            let mut object = request.raw().unwrap();
            object["metadata"]["name"] = "other".into();
            Verdict::change(object)
        }
    }

    ReviewScenario::<Renames>::create::<Namespace>(json!({})).run();
}

#[test]
fn object_of_another_type_and_a_request_that_is_none_fail_the_review() {
    let reader = FakeReader::of(&Limits::describe());
    let request = with_replicas(1).document().replace("\"replicas\":1", "\"replicas\":\"one\"");
    let RawVerdict::Failed(why) = review_text::<Limits>(&reader, &request) else { panic!() };
    assert!(why.starts_with("the new Deployment cannot be deserialized into the type"), "{why}");
    let RawVerdict::Failed(why) = review_text::<Limits>(&reader, "{}") else { panic!() };
    assert!(why.starts_with("the review request cannot be read: missing field"), "{why}");
}

#[test]
fn background_review_has_no_user_and_a_delete_no_object() {
    struct Shows;

    impl Reviewer for Shows {
        type Object = AnyObject;

        fn describe() -> Manifest {
            Describe::validating_policy("shows", "1.0.0")
                .rule(
                    RequestRule::of_resources("apps", ["*"])
                        .on([Operation::Create, Operation::Delete]),
                )
                .manifest()
        }

        fn review(_: &Context, request: &Review<AnyObject>) -> Verdict {
            Verdict::deny(format!(
                "{} {} {} {:?} {} {} {}",
                request.operation(),
                request.resource().resource,
                request.name(),
                request.user().username,
                request.is_background(),
                request.object().is_some(),
                request.any_object().is_some_and(|object| object.metadata.name == "a"),
            ))
        }
    }

    let object = || json!({"metadata": {"name": "a"}});
    let scenario = ReviewScenario::<Shows>::create::<Deployment>(object());
    scenario.background().run().is_denied("CREATE deployments a \"\" true true true");
    let scenario = ReviewScenario::<Shows>::delete::<Deployment>(object()).by("ann");
    scenario.run().is_denied("DELETE deployments a \"ann\" false false true");
}

#[test]
fn manifest_of_a_policy_is_that_of_its_description() {
    let manifest: Value =
        innkeeper_sdk::serde_json::from_str(&describe_policy_text::<Limits>()).unwrap();
    assert_eq!(
        manifest,
        json!({
            "name": "limits", "version": "1.0.0",
            "reads": [{"apiVersion": "v1", "kind": "ConfigMap", "plural": "configmaps", "scope": "Namespaced"}],
            "parametersSchema": {"type": "object"},
            "policy": {
                "kind": "Validate", "sideEffects": "None",
                "rules": [
                    {"groups": ["apps"], "versions": ["v1"], "resources": ["deployments"],
                        "operations": ["CREATE", "UPDATE"], "scope": "All"},
                    {"groups": ["apps"], "versions": ["v1"], "resources": ["deployments/scale"],
                        "operations": ["UPDATE"], "scope": "All"},
                ],
                "matchConditions": [{"name": "not-mine", "expression": "request.userInfo.username != 'me'"}],
            },
        })
    );
}

#[test]
fn reconciler_with_a_policy_has_the_rules_and_the_reads_of_both() {
    let manifest = <Both as Reconciler>::describe();
    assert_eq!((manifest.name.as_str(), manifest.version.as_str()), ("both", "2.0.0"));
    assert_eq!(manifest.policy, Limits::describe().policy);
    assert_eq!(manifest.reads.len(), 1, "ConfigMap once");
    assert_eq!(manifest.parameters_schema, Some(json!({"type": "object"}).into()));
}
