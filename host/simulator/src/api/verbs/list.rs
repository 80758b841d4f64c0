//! Reading many objects.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::api::http::accept::View;
use crate::api::http::query::Query;
use crate::api::request::Response;
use crate::api::request_context::{Outcome, RequestContext};
use crate::api::table;
use crate::api::table::Include;
use crate::api::verbs::list_options;
use crate::api::verbs::list_options::{Start, after, number, path};
use crate::mutation::{Mutation, is_active};
use crate::state::cluster::Cluster;
use crate::state::store::Stored;
use crate::types::object::partial;
use crate::types::object_key::Key;
use crate::types::selector::Selector;
use crate::types::status_error::StatusError;

/// The selector of a request. `check` checks the other options after the selectors are parsed and
/// before the fields are.
pub(crate) fn selector(
    context: &RequestContext<'_>,
    check: fn(&Query) -> Result<(), StatusError>,
) -> Result<Selector, StatusError> {
    let (labels, fields) = (context.query.get("labelSelector"), context.query.get("fieldSelector"));
    let selector = Selector::parse(labels, fields)?;
    check(context.query)?;
    let known = |path: &str| {
        let own: &[&str] = match (context.kind.group.as_str(), context.kind.name.as_str()) {
            ("", "Pod") => &[
                "spec.nodeName",
                "spec.restartPolicy",
                "spec.schedulerName",
                "spec.serviceAccountName",
                "spec.hostNetwork",
                "status.phase",
                "status.podIP",
                "status.podIPs",
                "status.nominatedNodeName",
            ],
            ("", "Event") => &[
                "involvedObject.kind",
                "involvedObject.namespace",
                "involvedObject.name",
                "involvedObject.uid",
                "involvedObject.apiVersion",
                "involvedObject.resourceVersion",
                "involvedObject.fieldPath",
                "reason",
                "reportingComponent",
                "source",
                "type",
            ],
            ("", "Secret") => &["type"],
            ("", "Service") => &["spec.clusterIP", "spec.type"],
            ("", "Namespace") => &["status.phase"],
            ("", "Node") => &["spec.unschedulable"],
            ("", "ReplicationController") => &["status.replicas"],
            ("batch", "Job") => &["status.successful"],
            ("certificates.k8s.io", "CertificateSigningRequest") => &["spec.signerName"],
            _ => &[],
        };
        let custom =
            context.kind.custom.as_ref().and_then(|one| one.version(&context.kind.version));
        let named = || custom.is_some_and(|one| one.selectable.iter().any(|field| field == path));
        // A kind without known fields has another message.
        let plain = context.kind.custom.is_none() && own.is_empty();
        let every = path == "metadata.name"
            || (path == "metadata.namespace" && (context.kind.namespaced || plain));
        if every || own.contains(&path) || named() {
            return Ok(());
        }
        Err(if plain {
            format!(
                "{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
            )
        } else if context.kind.is("batch", "Job") {
            format!("field label {path:?} not supported for Job")
        } else {
            format!("field label not supported: {path}")
        })
    };
    selector.check(&known)?;
    Ok(selector)
}

/// A page of objects.
pub(crate) struct Page {
    pub(crate) items: Vec<Stored>,
    /// The version of the page.
    version: u64,
    next: Option<String>,
    remaining: usize,
}

impl Page {
    /// The metadata of the list.
    fn metadata(&self, context: &RequestContext<'_>) -> Map<String, Value> {
        let mut metadata = Map::new();
        metadata.insert("resourceVersion".to_owned(), self.version.to_string().into());
        if context.kind.custom.is_some() {
            metadata.insert("continue".to_owned(), "".into());
        }
        if let Some(next) = &self.next {
            metadata.insert("continue".to_owned(), next.as_str().into());
        }
        if self.remaining > 0 {
            metadata.insert("remainingItemCount".to_owned(), self.remaining.into());
        }
        metadata
    }
}

/// The sort key of an object on the server.
fn in_path(key: &Key) -> impl Iterator<Item = u8> + '_ {
    key.0.bytes().chain([b'/']).chain(key.1.bytes())
}

/// The objects that a request means.
pub(crate) fn page(cluster: &Cluster, context: &RequestContext<'_>) -> Result<Page, StatusError> {
    let selector = selector(context, list_options::check_list)?;
    let limit = number(context.query, "limit")?.and_then(|limit| usize::try_from(limit).ok());
    // At version 0 the server lists from its watch cache, without pages. Events have no watch
    // cache.
    let whole = context.query.get("resourceVersion") == "0"
        && context.query.get("continue").is_empty()
        && context.kind.plural != "events";
    let limit = limit.filter(|limit| *limit > 0 && !whole).unwrap_or(usize::MAX);
    number(context.query, "timeoutSeconds")?;
    let namespace = context.namespace();
    // One name is a lookup, not a scan.
    let only = selector.name().filter(|_| !namespace.is_empty() || !context.kind.namespaced);
    let start = Start::read(context, cluster.store.version(), only.is_some())?;
    if start.version.is_some_and(|version| version < cluster.store.oldest()) {
        return Err(start.expired());
    }
    let version = start.version.unwrap_or(cluster.store.version());
    let objects = match (cluster.store.collection(context.kind_key()), start.version) {
        (None, _) => Cow::default(),
        (Some(collection), None) => Cow::Borrowed(&collection.objects),
        (Some(collection), Some(version)) => {
            collection.at(version).ok_or_else(|| start.expired())?
        }
    };
    let first = (namespace.to_owned(), String::new());
    let mut here: Vec<(&Key, &Stored)> = objects
        .range(first..)
        .take_while(|(key, _)| namespace.is_empty() || key.0 == namespace)
        .collect();
    // The server orders by paths: a namespace `a-b` is before what is in `a`.
    here.sort_by(|(a, _), (b, _)| in_path(a).cmp(in_path(b)));
    let from = start.from.filter(|_| !is_active(Mutation::ContinueStartsAgain));
    let mut page = Page { items: Vec::new(), version, next: None, remaining: 0 };
    let mut last: Option<&Key> = None;
    for (key, stored) in here {
        if only.is_some_and(|only| key.1 != only) {
            continue;
        }
        if from.as_ref().is_some_and(|from| path(context, key) < *from) {
            continue;
        }
        // The server does not check whether a later object matches.
        if page.items.len() >= limit {
            page.remaining += 1;
            continue;
        }
        let whole =
            context.request.method == "DELETE" && is_active(Mutation::CollectionIsDeletedWhole);
        if !(selector.is_all() || whole || selector.fits(&stored.object())) {
            continue;
        }
        last = Some(key);
        page.items.push(stored.clone());
    }
    if page.remaining > 0
        && let Some(last) = last
    {
        page.next = Some(after(version, &path(context, last)));
    }
    if !selector.is_all() {
        // The server does not count objects that it has not checked.
        page.remaining = 0;
    }
    Ok(page)
}

/// `list`.
pub(crate) fn list(cluster: &mut Cluster, context: &RequestContext<'_>) -> Outcome {
    let page = page(cluster, context)?;
    Ok(listed(cluster, context, &page))
}

/// A page in the requested form.
pub(crate) fn listed(cluster: &Cluster, context: &RequestContext<'_>, page: &Page) -> Response {
    let metadata = page.metadata(context);
    let view = context.view();
    if let View::Table(version) = view {
        let texts = page.items.iter().map(|stored| Cluster::text(&context.kind, &stored.text));
        let objects: Vec<Value> =
            texts.map(|text| serde_json::from_slice(&text).unwrap_or_default()).collect();
        let include = Include::parse(context.query.get("includeObject"));
        let list = Value::Object(metadata);
        let now = cluster.now();
        let table = table::of(version, &context.kind, &objects, Some(&list), include, now);
        return Response::json(200, &table);
    }
    let only = if let View::MetadataList(version) = view { Some(version) } else { None };
    let (kind, version) = match only {
        Some(version) => ("PartialObjectMetadataList".to_owned(), version.to_owned()),
        None => (list_kind(context), context.kind.api_version()),
    };
    let head = json!({"kind": kind, "apiVersion": version, "metadata": metadata});
    let mut body = head.to_string().into_bytes();
    body.pop();
    body.extend_from_slice(b",\"items\":[");
    for (index, stored) in page.items.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        if let Some(version) = only {
            let metadata = partial(&stored.object().whole(), version);
            body.extend_from_slice(metadata.to_string().as_bytes());
        } else {
            body.extend_from_slice(&item(context, stored));
        }
    }
    body.extend_from_slice(b"]}");
    Response::bytes(200, Bytes::from(body))
}

/// Items of built-in kinds have no kind and apiVersion; the list has them.
fn item(context: &RequestContext<'_>, stored: &Stored) -> Bytes {
    let text = Cluster::text(&context.kind, &stored.text);
    if context.kind.custom.is_some() {
        return text;
    }
    // Their members are not parsed.
    let members = serde_json::from_slice::<BTreeMap<String, &RawValue>>(&text);
    let mut members = members.unwrap_or_default();
    members.remove("kind");
    members.remove("apiVersion");
    Bytes::from(serde_json::to_vec(&members).unwrap_or_default())
}

/// The kind of a list.
pub(crate) fn list_kind(context: &RequestContext<'_>) -> String {
    context
        .kind
        .custom
        .as_ref()
        .map_or_else(|| format!("{}List", context.kind.name), |custom| custom.list_kind.clone())
}
