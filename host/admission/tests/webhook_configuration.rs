//! Webhook configurations: their documents, and which namespaces reach which webhook.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use expect_test::expect_file;
use fastrand::Rng;
use innkeeper_admission::webhook_configuration::selectors::{NAME_LABEL, never_selected};
use innkeeper_admission::webhook_configuration::{
    ClientConfig, ModeOverride, PolicyWebhooks, configuration, equals,
};
use innkeeper_admission::{FailurePolicy, Mode};
use innkeeper_contract::{
    LabelRequirement, MatchCondition, Operation, PolicyKind, PolicyRule, RuleScope,
    SelectorOperator,
};
use innkeeper_core::selector::LabelSelector;
use innkeeper_core::{Labels, Selector};
use serde_json::{Value, json};

/// What a configuration is made of, owned.
struct Policy {
    kind: PolicyKind,
    rules: Vec<PolicyRule>,
    conditions: Vec<MatchCondition>,
    namespace_selector: Vec<LabelRequirement>,
    object_selector: Vec<LabelRequirement>,
    namespaces: BTreeSet<String>,
    mode: Mode,
    overrides: Vec<(LabelRequirement, Mode)>,
    failure: FailurePolicy,
    url: Option<&'static str>,
}

impl Policy {
    /// A policy that validates all Deployments.
    fn new() -> Self {
        Self {
            kind: PolicyKind::Validate,
            rules: vec![rule(&["apps"], &["deployments"], RuleScope::All)],
            conditions: Vec::new(),
            namespace_selector: Vec::new(),
            object_selector: Vec::new(),
            namespaces: BTreeSet::new(),
            mode: Mode::Enforce,
            overrides: Vec::new(),
            failure: FailurePolicy::Fail,
            url: None,
        }
    }

    fn configuration(&self) -> Value {
        let service = ClientConfig::Service {
            namespace: "operators",
            name: "innkeeper-admission",
            port: 443,
        };
        configuration(&PolicyWebhooks {
            module: "labels",
            module_api_version: "innkeeper.dev/v1alpha1",
            module_uid: "uid-1",
            kind: self.kind,
            rules: &self.rules,
            match_conditions: self.conditions.iter().collect(),
            namespace_selector: self.namespace_selector.clone(),
            object_selector: self.object_selector.clone(),
            namespaces: &self.namespaces,
            mode: self.mode,
            overrides: self
                .overrides
                .iter()
                .map(|(namespaces, mode)| ModeOverride { namespaces, mode: *mode })
                .collect(),
            failure_policy: self.failure,
            timeout: Duration::from_millis(2_500),
            reinvocation: self.kind == PolicyKind::Mutate,
            client: self.url.map_or(service, ClientConfig::Url),
            ca_bundle: "-----BEGIN CERTIFICATE-----\n",
            host_namespace: "operators",
        })
    }
}

fn rule(groups: &[&str], resources: &[&str], scope: RuleScope) -> PolicyRule {
    let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
    PolicyRule {
        groups: texts(groups),
        versions: Vec::new(),
        resources: texts(resources),
        operations: vec![Operation::Create, Operation::Update],
        scope,
    }
}

fn requirement(key: &str, operator: SelectorOperator, values: &[&str]) -> LabelRequirement {
    let values = values.iter().map(ToString::to_string).collect();
    LabelRequirement { key: key.to_owned(), operator, values }
}

fn text(configuration: &Value) -> String {
    format!("{configuration:#}\n")
}

#[test]
fn configuration_of_validate() {
    let configuration = Policy::new().configuration();
    expect_file!["golden/configuration_of_validate.json"].assert_eq(&text(&configuration));
}

#[test]
fn configuration_of_mutate() {
    let mut rule = rule(&[""], &["pods", "pods/ephemeralcontainers"], RuleScope::Namespaced);
    rule.versions = vec!["v1".to_owned()];
    let policy = Policy {
        kind: PolicyKind::Mutate,
        rules: vec![rule],
        conditions: vec![MatchCondition {
            name: "not-a-job".to_owned(),
            expression: "!has(object.metadata.ownerReferences)".to_owned(),
        }],
        object_selector: vec![requirement("tier", SelectorOperator::In, &["web"])],
        failure: FailurePolicy::Ignore,
        url: Some("https://127.0.0.1:8443/"),
        ..Policy::new()
    };
    let configuration = policy.configuration();
    expect_file!["golden/configuration_of_mutate.json"].assert_eq(&text(&configuration));
}

#[test]
fn configuration_of_overrides() {
    let policy = Policy {
        rules: vec![rule(&["*"], &["*"], RuleScope::All)],
        namespace_selector: vec![requirement("env", SelectorOperator::Exists, &[])],
        mode: Mode::Warn,
        overrides: vec![
            (requirement("env", SelectorOperator::In, &["prod"]), Mode::Enforce),
            (requirement("team", SelectorOperator::DoesNotExist, &[]), Mode::Audit),
        ],
        ..Policy::new()
    };
    let configuration = policy.configuration();
    expect_file!["golden/configuration_of_overrides.json"].assert_eq(&text(&configuration));
}

/// One object that a request is about: which of the rules' scopes has it, and the labels of its
/// namespace or of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    InNamespace,
    Namespace,
    ClusterScoped,
}

/// The webhooks that the API server calls: by position in their paths.
fn called(configuration: &Value, subject: Subject, labels: &Labels) -> Vec<String> {
    let webhooks = configuration["webhooks"].as_array().unwrap().iter();
    let is_called = |webhook: &&Value| {
        let selector: LabelSelector =
            serde_json::from_value(webhook["namespaceSelector"].clone()).unwrap();
        let selector = Selector::try_from(&selector).unwrap();
        let has_rule =
            webhook["rules"].as_array().unwrap().iter().any(|rule| covers(rule, subject));
        has_rule && (subject == Subject::ClusterScoped || selector.matches(labels))
    };
    let path =
        |webhook: &Value| webhook["clientConfig"]["service"]["path"].as_str().unwrap().into();
    webhooks.filter(is_called).map(path).collect()
}

/// Whether a rule covers ConfigMaps, Namespaces or Nodes, of the core group.
fn covers(rule: &Value, subject: Subject) -> bool {
    let (plural, inside) = match subject {
        Subject::InNamespace => ("configmaps", true),
        Subject::Namespace => ("namespaces", false),
        Subject::ClusterScoped => ("nodes", false),
    };
    let any = |member: &str, name: &str| {
        rule[member].as_array().unwrap().iter().any(|one| one == name || one == "*")
    };
    let scope = match rule["scope"].as_str().unwrap() {
        "Namespaced" => inside,
        "Cluster" => !inside,
        _ => true,
    };
    scope && any("apiGroups", "") && any("resources", plural)
}

const KEYS: [&str; 3] = ["env", "team", NAME_LABEL];
const VALUES: [&str; 3] = ["a", "b", "c"];

fn any_requirement(rng: &mut Rng) -> LabelRequirement {
    let key = *rng.choice(&KEYS).unwrap();
    let mut values: Vec<&str> = VALUES.to_vec();
    rng.shuffle(&mut values);
    values.truncate(rng.usize(1..=3));
    match rng.u8(0..4) {
        0 => requirement(key, SelectorOperator::In, &values),
        1 => requirement(key, SelectorOperator::NotIn, &values),
        2 => requirement(key, SelectorOperator::Exists, &[]),
        _ => requirement(key, SelectorOperator::DoesNotExist, &[]),
    }
}

fn any_policy(rng: &mut Rng) -> Policy {
    let mode = |rng: &mut Rng| *rng.choice(&[Mode::Enforce, Mode::Warn, Mode::Audit]).unwrap();
    let scope = *rng.choice(&[RuleScope::All, RuleScope::Namespaced, RuleScope::Cluster]).unwrap();
    let mut namespaces = BTreeSet::new();
    if rng.u8(0..4) == 0 {
        namespaces.extend(["a", "kube-system"].map(ToOwned::to_owned));
    }
    Policy {
        rules: vec![rule(&["*"], &["*"], scope)],
        namespace_selector: (0..rng.usize(0..2)).map(|_| any_requirement(rng)).collect(),
        namespaces,
        mode: mode(rng),
        overrides: (0..rng.usize(0..=8)).map(|_| (any_requirement(rng), mode(rng))).collect(),
        ..Policy::new()
    }
}

/// The labels of a namespace of this name.
fn any_labels(rng: &mut Rng, name: &str) -> Labels {
    let mut labels = BTreeMap::from([(NAME_LABEL, name)]);
    for key in ["env", "team"] {
        if rng.bool() {
            labels.insert(key, rng.choice(&VALUES).unwrap());
        }
    }
    labels.into_iter().collect()
}

/// Whether the policy reviews requests of a subject in a namespace with these labels: what its
/// settings say, without the division into webhooks.
fn is_reviewed(policy: &Policy, subject: Subject, labels: &Labels) -> bool {
    let scope = policy.rules[0].scope;
    if subject == Subject::InNamespace {
        if scope == RuleScope::Cluster {
            return false;
        }
    } else if scope == RuleScope::Namespaced || !policy.namespaces.is_empty() {
        return false;
    }
    let name = labels.get(NAME_LABEL).unwrap();
    let is_named = policy.namespaces.is_empty() || policy.namespaces.contains(name);
    let selector = json!({ "matchExpressions": policy.namespace_selector });
    let selector: LabelSelector = serde_json::from_value(selector).unwrap();
    let is_selected = Selector::try_from(&selector).unwrap().matches(labels);
    subject == Subject::ClusterScoped || (is_named && is_selected)
}

/// Position and mode of the first override that a namespace meets.
fn expected_webhook(policy: &Policy, subject: Subject, labels: &Labels) -> usize {
    if subject == Subject::ClusterScoped {
        return 0;
    }
    let meets = |(requirement, _): &(LabelRequirement, Mode)| {
        let value = labels.get(&requirement.key);
        let is_one = value.is_some_and(|value| requirement.values.iter().any(|one| one == value));
        match requirement.operator {
            SelectorOperator::In => is_one,
            SelectorOperator::NotIn => !is_one,
            SelectorOperator::Exists => value.is_some(),
            SelectorOperator::DoesNotExist => value.is_none(),
        }
    };
    policy.overrides.iter().position(meets).map_or(0, |position| position + 1)
}

#[test]
fn each_namespace_reaches_exactly_one_webhook() {
    let mut rng = Rng::with_seed(16);
    let (mut reviewed, mut overridden) = (0, 0);
    for round in 0..600 {
        let policy = any_policy(&mut rng);
        let configuration = policy.configuration();
        for subject in [Subject::InNamespace, Subject::Namespace, Subject::ClusterScoped] {
            let name = *rng.choice(&VALUES).unwrap();
            let labels = any_labels(&mut rng, name);
            let called = called(&configuration, subject, &labels);
            let expected = is_reviewed(&policy, subject, &labels).then(|| {
                let webhook = expected_webhook(&policy, subject, &labels);
                reviewed += 1;
                overridden += usize::from(webhook > 0);
                format!("/v1/policies/labels/{webhook}")
            });
            assert_eq!(called, Vec::from_iter(expected), "{round} {subject:?} {labels:?}");
        }
    }
    assert!(reviewed > 400 && overridden > 100, "{reviewed} {overridden}");
}

#[test]
fn system_namespaces_and_host_are_never_selected() {
    let names = never_selected("operators");
    for name in ["kube-system", "innkeeper-system", "innkeeper-modules", "operators"] {
        assert!(names.iter().any(|one| one == name), "{name}");
    }
    let mut rng = Rng::with_seed(17);
    for round in 0..60 {
        let policy = any_policy(&mut rng);
        let configuration = policy.configuration();
        for name in &names {
            let labels = any_labels(&mut rng, name);
            for subject in [Subject::InNamespace, Subject::Namespace] {
                let called = called(&configuration, subject, &labels);
                assert!(called.is_empty(), "{round} {subject:?} {labels:?}: {called:?}");
            }
        }
    }
}

#[test]
fn only_webhooks_that_enforce_can_fail_a_request() {
    let policy = Policy {
        mode: Mode::Warn,
        overrides: vec![
            (requirement("a", SelectorOperator::Exists, &[]), Mode::Enforce),
            (requirement("b", SelectorOperator::Exists, &[]), Mode::Audit),
        ],
        ..Policy::new()
    };
    let of = |configuration: &Value| -> Vec<Value> {
        let webhooks = configuration["webhooks"].as_array().unwrap();
        webhooks.iter().map(|webhook| webhook["failurePolicy"].clone()).collect()
    };
    assert_eq!(of(&policy.configuration()), ["Ignore", "Fail", "Ignore"]);
    let ignored = Policy { failure: FailurePolicy::Ignore, ..policy };
    assert_eq!(of(&ignored.configuration()), ["Ignore"; 3]);
}

#[test]
fn names_of_a_policy_with_the_longest_name_fit() {
    let policy = Policy::new();
    let module = "m".repeat(63);
    let overrides = [requirement("a", SelectorOperator::Exists, &[])];
    let configuration = configuration(&PolicyWebhooks {
        module: &module,
        module_api_version: "innkeeper.dev/v1alpha1",
        module_uid: "u",
        kind: policy.kind,
        rules: &policy.rules,
        match_conditions: Vec::new(),
        namespace_selector: Vec::new(),
        object_selector: Vec::new(),
        namespaces: &policy.namespaces,
        mode: policy.mode,
        overrides: overrides
            .iter()
            .map(|namespaces| ModeOverride { namespaces, mode: Mode::Warn })
            .collect(),
        failure_policy: policy.failure,
        timeout: Duration::from_secs(1),
        reinvocation: false,
        client: ClientConfig::Url("https://host"),
        ca_bundle: "",
        host_namespace: "",
    });
    let names = configuration["webhooks"].as_array().unwrap().iter();
    let longest = names.map(|one| one["name"].as_str().unwrap().len()).max().unwrap();
    assert!(longest <= 253 && configuration["metadata"]["name"].as_str().unwrap().len() <= 253);
}

#[test]
fn configuration_with_other_fields_of_others_is_equal() {
    let expected = Policy::new().configuration();
    let mut live = expected.clone();
    live["metadata"]["uid"] = json!("x");
    live["metadata"]["labels"]["app"] = json!("other");
    live["metadata"]["annotations"] = json!({"a": "b"});
    live["webhooks"][0]["aFieldOfTheFuture"] = json!("Default");
    assert!(equals(&live, &expected));
}

#[test]
fn configuration_that_somebody_has_changed_is_not_equal() {
    type Change = fn(&mut Value);
    let expected = Policy::new().configuration();
    let changes: [Change; 11] = [
        |live| live["webhooks"] = json!([]),
        |live| live["webhooks"] = Value::Null,
        |live| live["webhooks"][0]["failurePolicy"] = json!("Ignore"),
        |live| live["webhooks"][0]["clientConfig"]["caBundle"] = json!(""),
        |live| live["webhooks"][0]["clientConfig"]["service"]["name"] = json!("other"),
        |live| live["webhooks"][0]["rules"][0]["operations"] = json!(["DELETE"]),
        |live| live["webhooks"][0]["namespaceSelector"]["matchLabels"] = json!({"never": "x"}),
        |live| {
            let second = live["webhooks"][0].clone();
            live["webhooks"].as_array_mut().unwrap().push(second);
        },
        |live| live["metadata"]["labels"] = json!({}),
        |live| live["metadata"]["ownerReferences"] = Value::Null,
        |live| {
            let owners = live["metadata"]["ownerReferences"].as_array_mut().unwrap();
            owners.push(json!({"apiVersion": "v1", "kind": "Namespace", "name": "a", "uid": "b"}));
        },
    ];
    for (index, change) in changes.into_iter().enumerate() {
        let mut live = expected.clone();
        change(&mut live);
        assert!(!equals(&live, &expected), "{index}");
    }
}
