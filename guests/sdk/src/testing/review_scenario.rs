#![allow(clippy::panic, clippy::missing_panics_doc, reason = "for tests, which fail by a panic")]

use std::marker::PhantomData;

use innkeeper_contract::{
    GroupVersionKind, GroupVersionResource, Manifest, Operation, PolicyManifest, PolicyRule,
    ReviewRequest, User,
};
use serde_json::{Value, json};

use super::parameter_kinds::with_kinds;
use super::scenario::{NAMESPACE, fill};
use super::{FakeReader, ReviewRun};
use crate::reviewer::review_text;
use crate::{RawVerdict, Readiness, ReadinessState, Resource, Reviewer};

/// One request to a policy, and the objects that the policy can read.
///
/// It does what the host and the API server do: the policy is asked only about requests that match
/// one of its rules. Conditions in CEL count as met.
///
/// ```ignore
/// ReviewScenario::<Policy>::create::<Deployment>(json!({"spec": {"replicas": 0}}))
///     .by("ann")
///     .parameters(json!({"replicasMin": 1}))
///     .run()
///     .is_denied("spec.replicas")
///     .has_cause("spec.replicas");
/// ```
pub struct ReviewScenario<P> {
    request: ReviewRequest,
    manifest: Manifest,
    reader: FakeReader,
    policy: PhantomData<P>,
}

impl<P: Reviewer> ReviewScenario<P> {
    /// Creates a request that creates this object of the kind `K`. Sets `apiVersion`, `kind`, name
    /// and namespace if they are missing.
    pub fn create<K: Resource>(object: Value) -> Self {
        Self::of::<K>(Operation::Create, Some(object), None)
    }

    /// Creates a request that replaces an object of the kind `K`. Sets the same members as
    /// [`create`](Self::create), in both.
    pub fn update<K: Resource>(old: Value, object: Value) -> Self {
        Self::of::<K>(Operation::Update, Some(object), Some(old))
    }

    /// Creates a request that deletes this object of the kind `K`. Sets the same members as
    /// [`create`](Self::create).
    pub fn delete<K: Resource>(old: Value) -> Self {
        Self::of::<K>(Operation::Delete, None, Some(old))
    }

    fn of<K: Resource>(operation: Operation, object: Option<Value>, old: Option<Value>) -> Self {
        let manifest = P::describe();
        let reader = FakeReader::of(&manifest);
        let (object, old_object) = (object.map(filled::<K>), old.map(filled::<K>));
        let (group, version) = K::API_VERSION.split_once('/').unwrap_or(("", K::API_VERSION));
        let (group, version) = (group.to_owned(), version.to_owned());
        let any = object.as_ref().or(old_object.as_ref());
        let text = |member: &str| {
            any.and_then(|any| any["metadata"][member].as_str()).unwrap_or_default().to_owned()
        };
        let request = ReviewRequest {
            operation,
            kind: GroupVersionKind {
                group: group.clone(),
                version: version.clone(),
                kind: K::KIND.to_owned(),
            },
            resource: GroupVersionResource { group, version, resource: K::PLURAL.to_owned() },
            subresource: String::new(),
            request_kind: None,
            request_resource: None,
            name: text("name"),
            // Of a Namespace, the API server names it as its namespace too.
            namespace: text(if K::KIND == "Namespace" { "name" } else { "namespace" }),
            user: user("test-user"),
            object,
            old_object,
            options: Value::Null,
            dry_run: false,
            background: false,
            parameters: Value::Null,
        };
        Self { request, manifest, reader, policy: PhantomData }
    }

    /// Sets the name of the user who sends the request; `test-user` if left out.
    pub fn by(mut self, username: &str) -> Self {
        self.request.user = User { username: username.to_owned(), ..self.request.user };
        self
    }

    /// Adds a group of the user.
    pub fn in_group(mut self, group: &str) -> Self {
        self.request.user.groups.push(group.to_owned());
        self
    }

    /// Sets the subresource of the request, for example `scale`.
    pub fn subresource(mut self, subresource: &str) -> Self {
        subresource.clone_into(&mut self.request.subresource);
        self
    }

    /// Sets the options of the operation.
    pub fn options(mut self, options: Value) -> Self {
        self.request.options = options;
        self
    }

    /// Makes the request a dry run.
    pub fn dry_run(mut self) -> Self {
        self.request.dry_run = true;
        self
    }

    /// Makes this the review of an existing object by the host: without a user.
    pub fn background(mut self) -> Self {
        self.request.background = true;
        self.request.user = User::default();
        self
    }

    /// Sets the Module's `spec.parameters`.
    pub fn parameters(mut self, parameters: Value) -> Self {
        self.reader.declare(&with_kinds(P::describe(), &parameters));
        self.request.parameters = parameters;
        self
    }

    /// Adds a ready object of the cluster. It needs `apiVersion`, `kind` and, if it is namespaced,
    /// a namespace.
    pub fn with_object(mut self, object: Value) -> Self {
        let readiness = Readiness { state: ReadinessState::Ready, message: String::new() };
        self.reader.add(object, readiness);
        self
    }

    /// Makes the API server not serve this kind.
    pub fn without<K: Resource>(mut self) -> Self {
        self.reader.do_not_serve(&K::kind());
        self
    }

    /// Makes reads of this kind fail with [`ReadError::Forbidden`](crate::ReadError::Forbidden).
    pub fn deny_reads<K: Resource>(mut self) -> Self {
        self.reader.forbid(&K::kind());
        self
    }

    /// Sets the time, in milliseconds since 1970-01-01T00:00:00Z.
    pub fn at_ms(mut self, now_ms: f64) -> Self {
        self.reader.set_now_ms(now_ms);
        self
    }

    /// Returns the `review-request` document.
    pub fn document(&self) -> String {
        json!(self.request).to_string()
    }

    /// Asks the policy, if a rule of its manifest matches the request. If not, the run
    /// [`is_not_reviewed`](ReviewRun::is_not_reviewed).
    ///
    /// Panics where the host would refuse the verdict, and if the policy changes an object that it
    /// has changed before: the API server may ask it again.
    pub fn run(&self) -> ReviewRun {
        let policy = self.described();
        let ReviewRequest { operation, resource, subresource, namespace, .. } = &self.request;
        let is_reviewed =
            |rule: &PolicyRule| rule.matches(*operation, resource, subresource, namespace);
        if !policy.rules.iter().any(is_reviewed) {
            return ReviewRun::not_reviewed(self.request.object.clone());
        }
        let run = self.ask(policy, &self.request);
        if run.changed().is_some() {
            let request = ReviewRequest { object: run.changed().cloned(), ..self.request.clone() };
            let second = self.ask(policy, &request);
            let same = second.changed().is_none_or(|changed| Some(changed) == run.changed());
            assert!(
                same,
                "the policy changes an object that it has changed before, which is {:#}",
                second.changed().unwrap_or(&Value::Null)
            );
        }
        run
    }

    fn ask(&self, policy: &PolicyManifest, request: &ReviewRequest) -> ReviewRun {
        let raw: RawVerdict = review_text::<P>(&self.reader, &json!(request).to_string());
        ReviewRun::new(&raw, policy.kind, request, self.reader.logged())
    }

    #[track_caller]
    fn described(&self) -> &PolicyManifest {
        match &self.manifest.policy {
            Some(policy) => policy,
            None => panic!(
                "the manifest has no policy: begin it with Describe::validating_policy or Describe::mutating_policy"
            ),
        }
    }
}

fn user(name: &str) -> User {
    let groups = vec!["system:authenticated".to_owned()];
    User { username: name.to_owned(), groups, ..User::default() }
}

/// Returns the object with the members that each object has.
fn filled<K: Resource>(mut object: Value) -> Value {
    fill(&mut object, "apiVersion", json!(K::API_VERSION));
    fill(&mut object, "kind", json!(K::KIND));
    fill(&mut object["metadata"], "name", json!("example"));
    if K::kind().is_namespaced() {
        fill(&mut object["metadata"], "namespace", json!(NAMESPACE));
    }
    object
}
