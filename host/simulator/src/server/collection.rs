//! Reading many objects.

use std::collections::BTreeMap;
use std::ops::Bound::{self, Unbounded};

use base64::Engine as _;
use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{Ask, Outcome};
use crate::cluster::Cluster;
use crate::http::accept::View;
use crate::request::Answer;
use crate::selector::Selector;
use crate::status_error::StatusError;
use crate::store::{Key, Stored};
use crate::switch::{Bug, planted};
use crate::table::{self, Include};
use crate::watch::partial;

/// Where a list goes on.
struct Continue {
    version: u64,
    after: Key,
}

impl Continue {
    fn encode(&self) -> String {
        let value = json!({"v": "meta.k8s.io/v1", "rv": self.version, "start": [self.after.0, self.after.1]});
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(value.to_string())
    }

    fn decode(text: &str) -> Option<Self> {
        let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(text).ok()?;
        let value: Value = serde_json::from_slice(&bytes).ok()?;
        let text = |index: usize| Some(value["start"][index].as_str()?.to_owned());
        Some(Self { version: value["rv"].as_u64()?, after: (text(0)?, text(1)?) })
    }
}

/// Which fields of a kind can be selected by.
pub(crate) fn selector(ask: &Ask<'_>) -> Result<Selector, StatusError> {
    let known = |path: &str| {
        let every =
            path == "metadata.name" || (path == "metadata.namespace" && ask.kind.namespaced);
        let own: &[&str] = match (ask.kind.group.as_str(), ask.kind.name.as_str()) {
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
            ("", "Namespace") => &["status.phase", "name"],
            ("", "Node") => &["spec.unschedulable"],
            ("", "PersistentVolume" | "PersistentVolumeClaim") => &["name"],
            ("apps", "ReplicaSet") => &["status.replicas"],
            ("batch", "Job") => &["status.successful"],
            _ => &[],
        };
        let custom = ask.kind.custom.as_ref().and_then(|one| one.version(&ask.kind.version));
        let named = || custom.is_some_and(|one| one.selectable.iter().any(|field| field == path));
        every || own.contains(&path) || named()
    };
    Selector::parse(ask.query.get("labelSelector"), ask.query.get("fieldSelector"), &known)
}

/// A page of objects.
pub(crate) struct Page {
    pub(crate) items: Vec<Stored>,
    next: Option<String>,
    remaining: usize,
}

impl Cluster {
    /// The objects that a request means.
    pub(crate) fn page(&self, ask: &Ask<'_>) -> Result<Page, StatusError> {
        let selector = selector(ask)?;
        let limit: usize = ask.query.get("limit").parse().unwrap_or(0);
        let from = match ask.query.get("continue") {
            "" => None,
            text => Some(Continue::decode(text).ok_or_else(|| {
                StatusError::bad_request(
                    "continue key is not valid: encoded value is not a version that is known",
                )
            })?),
        };
        let namespace = ask.namespace();
        let objects = self.store.collection(ask.kind_key()).map(|one| &one.objects);
        let mut page = Page { items: Vec::new(), next: None, remaining: 0 };
        let mut last: Option<Key> = None;
        let first = (namespace.to_owned(), String::new());
        let from = from.filter(|from| from.after > first && !planted(Bug::ContinueStartsAgain));
        let start = from.map_or(Bound::Included(first), |from| Bound::Excluded(from.after));
        let range = objects.into_iter().flat_map(|all| all.range((start.clone(), Unbounded)));
        let here = |key: &Key| namespace.is_empty() || key.0 == namespace;
        for (key, stored) in range.take_while(|(key, _)| here(key)) {
            // Whether what follows fits is not looked at.
            if limit > 0 && page.items.len() >= limit {
                page.remaining += 1;
                continue;
            }
            if !(selector.is_all() || selector.fits(&stored.object())) {
                continue;
            }
            last = Some(key.clone());
            page.items.push(stored.clone());
        }
        if page.remaining > 0
            && let Some(after) = last
        {
            page.next = Some(Continue { version: self.store.version(), after }.encode());
        }
        if !selector.is_all() {
            // The server does not count what it has not looked at.
            page.remaining = 0;
        }
        Ok(page)
    }

    /// `list`.
    pub(super) fn list(&mut self, ask: &Ask<'_>) -> Outcome {
        let page = self.page(ask)?;
        let mut metadata = Map::new();
        metadata.insert("resourceVersion".to_owned(), self.store.version().to_string().into());
        if ask.kind.custom.is_some() {
            metadata.insert("continue".to_owned(), "".into());
        }
        if let Some(next) = &page.next {
            metadata.insert("continue".to_owned(), next.as_str().into());
        }
        if page.remaining > 0 {
            metadata.insert("remainingItemCount".to_owned(), page.remaining.into());
        }
        let view = ask.view();
        if view == View::Table {
            let texts = page.items.iter().map(|stored| Self::text(&ask.kind, &stored.text));
            let objects: Vec<Value> =
                texts.map(|text| serde_json::from_slice(&text).unwrap_or_default()).collect();
            let include = Include::parse(ask.query.get("includeObject"));
            let list = Value::Object(metadata);
            let table = table::of(&ask.kind, &objects, Some(&list), include, self.now());
            return Ok(Answer::json(200, &table));
        }
        let (kind, version, only) = if view == View::Metadata {
            ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1".to_owned(), true)
        } else {
            (list_kind(ask), ask.kind.api_version(), false)
        };
        let head = json!({"kind": kind, "apiVersion": version, "metadata": metadata});
        let mut body = head.to_string().into_bytes();
        body.pop();
        body.extend_from_slice(b",\"items\":[");
        for (index, stored) in page.items.iter().enumerate() {
            if index > 0 {
                body.push(b',');
            }
            if only {
                body.extend_from_slice(partial(&stored.object()).to_string().as_bytes());
            } else {
                body.extend_from_slice(&Self::item(ask, stored));
            }
        }
        body.extend_from_slice(b"]}");
        Ok(Answer::bytes(200, Bytes::from(body)))
    }

    /// Items of built-in kinds do not say what they are; the list does.
    fn item(ask: &Ask<'_>, stored: &Stored) -> Bytes {
        if ask.kind.custom.is_some() {
            return Self::text(&ask.kind, &stored.text);
        }
        // Their members are not looked into.
        let members = serde_json::from_slice::<BTreeMap<String, &RawValue>>(&stored.text);
        let mut members = members.unwrap_or_default();
        members.remove("kind");
        members.remove("apiVersion");
        Bytes::from(serde_json::to_vec(&members).unwrap_or_default())
    }
}

/// The kind of a list.
pub(crate) fn list_kind(ask: &Ask<'_>) -> String {
    ask.kind
        .custom
        .as_ref()
        .map_or_else(|| format!("{}List", ask.kind.name), |custom| custom.list_kind.clone())
}
