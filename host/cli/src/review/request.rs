//! The requests to review: objects from files, and what the options say about their user.

use std::fmt;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use innkeeper_contract::{
    GroupVersionResource, Kind, KindName, Manifest, Operation, PolicyRule, User,
};
use innkeeper_core::review::{Gvk, Gvr, ReviewInput};
use serde_json::json;
use serde_json::value::RawValue;

use crate::objects::{self, InputObject};
use crate::parameter_kinds;

/// The group of each user that the API server has authenticated.
const AUTHENTICATED: &str = "system:authenticated";

/// The name of the user who sends the requests, unless an option gives another one.
const USER: &str = "user";

/// What the requests do, and who sends them.
#[derive(clap::Args)]
pub(super) struct RequestArguments {
    /// Review only the object of this name, as NAME or NAMESPACE/NAME.
    #[arg(long, value_name = "NAME")]
    object: Option<String>,
    /// What the requests do [default: UPDATE with --old, else CREATE].
    #[arg(long, value_enum, ignore_case = true)]
    operation: Option<GivenOperation>,
    /// Objects as they are stored before an UPDATE, as YAML or JSON (repeatable): one of the same
    /// kind and name for each object.
    #[arg(long, value_name = "FILE")]
    old: Vec<PathBuf>,
    /// Resource of objects whose kind is neither one of Kubernetes nor defined in the files, as in
    /// URLs: lower case and plural.
    #[arg(long, value_name = "RESOURCE")]
    resource: Option<String>,
    /// Subresource of the requests, for example scale.
    #[arg(long, value_name = "NAME")]
    subresource: Option<String>,
    /// Name of the user who sends the requests.
    #[arg(long, value_name = "NAME", default_value = USER)]
    user: String,
    /// Group of the user, in addition to system:authenticated (repeatable).
    #[arg(long = "group", value_name = "NAME")]
    groups: Vec<String>,
    /// Make the requests dry runs: the API server would store nothing.
    #[arg(long)]
    dry_run: bool,
    /// Review the objects as the host reviews existing ones: without a user, and as if each were
    /// created now.
    #[arg(long, conflicts_with_all = ["operation", "old", "subresource", "groups", "dry_run"])]
    background: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum GivenOperation {
    #[value(name = "CREATE")]
    Create,
    #[value(name = "UPDATE")]
    Update,
    #[value(name = "DELETE")]
    Delete,
}

/// A request to review.
#[derive(Clone)]
pub(crate) struct Request<'a> {
    pub(crate) operation: Operation,
    pub(crate) background: bool,
    /// The object as the file has it.
    pub(crate) place: &'a InputObject,
    kind: Kind,
    subresource: String,
    name: String,
    /// Empty for a cluster-scoped object.
    namespace: String,
    user: User,
    object: Option<Box<RawValue>>,
    old: Option<Box<RawValue>>,
    options: Box<RawValue>,
    dry_run: bool,
}

impl RequestArguments {
    /// The requests about the objects that match a rule, in the order of the files.
    ///
    /// # Errors
    /// If an option does not fit the objects, or no object matches a rule.
    pub(super) fn requests<'a>(
        &self,
        given: &'a [InputObject],
        manifest: &Manifest,
        rules: &[PolicyRule],
    ) -> anyhow::Result<Vec<Request<'a>>> {
        let mut old = Vec::new();
        for file in &self.old {
            old.extend(objects::read(file)?);
        }
        let operation = match self.operation {
            Some(GivenOperation::Create) => Operation::Create,
            Some(GivenOperation::Delete) => Operation::Delete,
            None if old.is_empty() => Operation::Create,
            Some(GivenOperation::Update) | None => Operation::Update,
        };
        if !old.is_empty() && operation != Operation::Update {
            bail!("--old is for UPDATE; a DELETE takes the stored object from -f");
        }
        let definitions: Vec<_> = given.iter().map(|object| object.value.clone()).collect();
        let mut requests = Vec::new();
        let mut unknown = Vec::new();
        for object in given.iter().filter(|object| self.is_chosen(object)) {
            let resource = self.resource.as_deref();
            let Some(kind) = kind_of(object, manifest, &definitions, resource) else {
                unknown.push(format!("{} {}", object.text("/apiVersion"), object.text("/kind")));
                continue;
            };
            if is_matched(rules, operation, object, &kind, self.subresource()) {
                requests.push(self.request(operation, object, kind, &old)?);
            }
        }
        if requests.is_empty() {
            bail!("{}", self.nothing_matches(operation, rules, &unknown));
        }
        Ok(requests)
    }

    fn subresource(&self) -> &str {
        self.subresource.as_deref().unwrap_or_default()
    }

    fn is_chosen(&self, object: &InputObject) -> bool {
        let name = object.text("/metadata/name");
        self.object.as_deref().is_none_or(|chosen| {
            let namespace = object.text("/metadata/namespace");
            chosen == name || chosen.split_once('/') == Some((namespace, name))
        })
    }

    fn request<'a>(
        &self,
        operation: Operation,
        place: &'a InputObject,
        kind: Kind,
        old: &[InputObject],
    ) -> anyhow::Result<Request<'a>> {
        let stored = match operation {
            Operation::Update => {
                let name = place.stored_key(&kind);
                let mut same =
                    old.iter().filter(|old| old.is(&kind) && old.stored_key(&kind) == name);
                same.next().with_context(|| {
                    format!(
                        "{}: UPDATE needs the stored {} {name}: give it with --old",
                        place.place, kind.kind
                    )
                })?
            }
            _ => place,
        };
        let mut request = Request::new(operation, place, kind, stored)?;
        request.user = if self.background {
            User::default()
        } else {
            let mut groups = self.groups.clone();
            groups.push(AUTHENTICATED.to_owned());
            User { username: self.user.clone(), groups, ..User::default() }
        };
        request.background = self.background;
        self.subresource().clone_into(&mut request.subresource);
        request.options = options(operation, self.dry_run)?;
        request.dry_run = self.dry_run;
        Ok(request)
    }

    fn nothing_matches(
        &self,
        operation: Operation,
        rules: &[PolicyRule],
        unknown: &[String],
    ) -> String {
        let chosen = self.object.as_ref().map(|name| format!(" of the name {name}"));
        let resources = rules.iter().filter(|rule| rule.operations.contains(&operation));
        let resources = resources.flat_map(|rule| &rule.resources).map(String::as_str);
        let resources = match resources.collect::<Vec<_>>().join(", ") {
            none if none.is_empty() => "nothing".to_owned(),
            some => some,
        };
        let unknown = match unknown.first() {
            Some(one) => format!(
                "; the resource of {one} is not known: give it with --resource, or its CustomResourceDefinition with -f"
            ),
            None => String::new(),
        };
        format!(
            "no object{} in the files matches a rule of the policy, which reviews {operation} of {resources}{unknown}",
            chosen.unwrap_or_default()
        )
    }
}

/// The kind of an object with its plural: one that the guest declares, one of Kubernetes, one of a
/// definition among the files, or of this `resource`. None if that is not known.
pub(crate) fn kind_of(
    object: &InputObject,
    manifest: &Manifest,
    definitions: &[serde_json::Value],
    resource: Option<&str>,
) -> Option<Kind> {
    let owned = manifest.owned.iter().map(|owned| &owned.kind);
    let mut declared = manifest.primary.iter().chain(owned).chain(&manifest.reads);
    if let Some(kind) = declared.find(|kind| object.is(kind)) {
        return Some(kind.clone());
    }
    let (api_version, kind) = (object.text("/apiVersion"), object.text("/kind"));
    let name = KindName { api_version: api_version.to_owned(), kind: kind.to_owned() };
    parameter_kinds::find(&name, definitions).or_else(|| {
        let plural = resource?;
        Some(match object.text("/metadata/namespace") {
            "" => Kind::cluster(api_version, kind, plural),
            _ => Kind::namespaced(api_version, kind, plural),
        })
    })
}

fn is_matched(
    rules: &[PolicyRule],
    operation: Operation,
    object: &InputObject,
    kind: &Kind,
    subresource: &str,
) -> bool {
    let (group, version) = (kind.group().to_owned(), version(kind).to_owned());
    let resource = GroupVersionResource { group, version, resource: kind.plural.clone() };
    let key = object.stored_key(kind);
    rules.iter().any(|rule| rule.matches(operation, &resource, subresource, key.namespace()))
}

fn version(kind: &Kind) -> &str {
    kind.api_version.rsplit('/').next().unwrap_or_default()
}

/// The options that the API server sends.
fn options(operation: Operation, dry_run: bool) -> anyhow::Result<Box<RawValue>> {
    let kind = match operation {
        Operation::Create | Operation::Connect => "CreateOptions",
        Operation::Update => "UpdateOptions",
        Operation::Delete => "DeleteOptions",
    };
    let mut options = json!({"apiVersion": "meta.k8s.io/v1", "kind": kind});
    if dry_run {
        options["dryRun"] = json!(["All"]);
    }
    Ok(serde_json::value::to_raw_value(&options)?)
}

impl<'a> Request<'a> {
    /// A request of a user about an object from a file; `stored` is the object before an UPDATE.
    ///
    /// # Errors
    /// If an object cannot be written as JSON.
    pub(crate) fn new(
        operation: Operation,
        place: &'a InputObject,
        kind: Kind,
        stored: &InputObject,
    ) -> anyhow::Result<Self> {
        let raw = |object: &InputObject| {
            serde_json::value::to_raw_value(&object.stored(&kind))
                .with_context(|| object.place.to_string())
        };
        let (object, old) = match operation {
            Operation::Delete => (None, Some(raw(place)?)),
            Operation::Update => (Some(raw(place)?), Some(raw(stored)?)),
            Operation::Create | Operation::Connect => (Some(raw(place)?), None),
        };
        let key = place.stored_key(&kind);
        let groups = vec![AUTHENTICATED.to_owned()];
        Ok(Self {
            operation,
            background: false,
            place,
            name: key.name().to_owned(),
            namespace: key.namespace().to_owned(),
            kind,
            subresource: String::new(),
            user: User { username: USER.to_owned(), groups, ..User::default() },
            object,
            old,
            options: options(operation, false)?,
            dry_run: false,
        })
    }

    /// The request by which the host reviews an existing object.
    ///
    /// # Errors
    /// If the object cannot be written as JSON.
    pub(crate) fn existing(place: &'a InputObject, kind: Kind) -> anyhow::Result<Self> {
        let create = Self::new(Operation::Create, place, kind, place)?;
        Ok(Self { background: true, user: User::default(), ..create })
    }

    /// The same request with another object, given as JSON.
    ///
    /// # Errors
    /// If the text is no JSON.
    pub(crate) fn with_object(&self, text: &str) -> anyhow::Result<Self> {
        let object = RawValue::from_string(text.to_owned())?;
        Ok(Self { object: Some(object), ..self.clone() })
    }

    /// Whether one of the rules matches.
    pub(crate) fn is_matched(&self, rules: &[PolicyRule]) -> bool {
        is_matched(rules, self.operation, self.place, &self.kind, &self.subresource)
    }

    /// The request as the host takes it.
    pub(crate) fn input<'s>(&'s self, parameters: &'s str) -> ReviewInput<'s> {
        let (group, version) = (self.kind.group(), version(&self.kind));
        // Of a Namespace, the API server names it as its namespace too.
        let is_namespace = group.is_empty() && self.kind.kind == "Namespace";
        ReviewInput {
            operation: self.operation,
            kind: Gvk { group, version, kind: &self.kind.kind },
            resource: Gvr { group, version, resource: &self.kind.plural },
            subresource: &self.subresource,
            request_kind: None,
            request_resource: None,
            name: &self.name,
            namespace: if is_namespace { &self.name } else { &self.namespace },
            user: &self.user,
            object: self.object.as_deref(),
            old_object: self.old.as_deref(),
            options: (!self.background).then_some(&*self.options),
            dry_run: self.dry_run,
            background: self.background,
            parameters,
        }
    }
}

/// For people, as in `CREATE Deployment web/shop`.
impl fmt::Display for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.place.stored_key(&self.kind);
        write!(f, "{} {}", self.operation, self.kind.kind)?;
        if !self.subresource.is_empty() {
            write!(f, "/{}", self.subresource)?;
        }
        write!(f, " {key}")
    }
}
