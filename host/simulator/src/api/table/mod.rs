//! Objects as tables, for people.

pub(crate) mod age;
pub(crate) mod core;
pub(crate) mod custom;
pub(crate) mod network;
pub(crate) mod parts;
pub(crate) mod pod;
pub(crate) mod policy;
pub(crate) mod volume;
pub(crate) mod workload;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::table::age::age;
use crate::types::descriptions::texts;
use crate::types::kind::Kind;
use crate::types::kinds::autoscaler;
use crate::types::object::meta;
use crate::types::object::partial;

/// How much of an object a row includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Include {
    None,
    Metadata,
    Object,
}

impl Include {
    /// Reads the parameter of that name.
    pub(crate) fn parse(text: &str) -> Self {
        match text {
            "None" => Self::None,
            "Object" => Self::Object,
            _ => Self::Metadata,
        }
    }
}

/// The source of the rows of a kind's table.
enum Filling<'a> {
    /// The printer of a built-in kind.
    Own,
    /// The columns of a definition.
    Columns(&'a [Value]),
    /// Name and age only, as the server prints its own kinds without columns.
    Made,
    /// Name and age only, as the server prints definitions without columns.
    Age,
}

/// A table of objects in a version of the group `meta.k8s.io`; `list` is the metadata of a list.
pub(crate) fn of(
    version: &str,
    kind: &Kind,
    objects: &[Value],
    list: Option<&Value>,
    include: Include,
    now: Timestamp,
) -> Value {
    let own = kind.custom.as_ref().and_then(|custom| custom.version(&kind.version));
    let own = own.map(|version| version.columns.as_slice());
    let printed = if own.is_some() { None } else { texts().columns(&kind.group, &kind.name) };
    let filling = match own {
        Some([]) => Filling::Age,
        Some(columns) => Filling::Columns(columns),
        None if printed.is_some() => Filling::Own,
        None => Filling::Made,
    };
    let columns = printed.unwrap_or_else(|| {
        let description =
            |field| texts().description(crate::types::crd::definition::OBJECT_META, field);
        let mut columns = vec![json!({"name": "Name", "type": "string", "format": "name",
            "description": description("name"), "priority": 0})];
        let made = |name: &str| {
            json!({"name": name, "type": "date", "format": "",
                "description": description("creationTimestamp"), "priority": 0})
        };
        match filling {
            Filling::Columns(own) => columns.extend(own.iter().map(custom::column)),
            Filling::Made => columns.push(made("Created At")),
            Filling::Own | Filling::Age => columns.push(made("Age")),
        }
        columns
    });
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let made = meta(object, "creationTimestamp");
            let mut cells = vec![Value::from(meta(object, "name"))];
            match filling {
                Filling::Own => cells = row(kind, object, now),
                Filling::Columns(own) => {
                    cells.extend(own.iter().map(|column| custom::cell(object, column, now)));
                }
                Filling::Made => cells.push(made.into()),
                Filling::Age => cells.push(age(made, now).into()),
            }
            let mut row = json!({ "cells": cells });
            match include {
                Include::None => {}
                Include::Metadata => row["object"] = partial(object, version),
                Include::Object => row["object"] = object.clone(),
            }
            if kind.is("", "Pod")
                && let Some(conditions) = pod::conditions(object)
            {
                row["conditions"] = conditions;
            }
            row
        })
        .collect();
    let metadata = list.cloned().unwrap_or_else(|| {
        let first = objects.first().map(|object| meta(object, "resourceVersion"));
        json!({ "resourceVersion": first.unwrap_or_default() })
    });
    json!({"kind": "Table", "apiVersion": version, "metadata": metadata,
        "columnDefinitions": columns, "rows": rows})
}

/// The cells of a built-in kind, in the order of its columns.
fn row(kind: &Kind, object: &Value, now: Timestamp) -> Vec<Value> {
    let known = match kind.group.as_str() {
        "autoscaling" => {
            // The columns are those of the stored version.
            let mut stored = object.clone();
            autoscaler::to_stored(&mut stored);
            workload::cells(&kind.name, &stored, now)
        }
        "apps" | "batch" | "policy" => workload::cells(&kind.name, object, now),
        "networking.k8s.io" | "discovery.k8s.io" => network::cells(&kind.name, object, now),
        "storage.k8s.io" => volume::cells(&kind.name, object, now),
        "apiregistration.k8s.io"
        | "certificates.k8s.io"
        | "flowcontrol.apiserver.k8s.io"
        | "node.k8s.io"
        | "resource.k8s.io"
        | "scheduling.k8s.io" => policy::cells(&kind.name, object, now),
        ""
        | "admissionregistration.k8s.io"
        | "rbac.authorization.k8s.io"
        | "coordination.k8s.io"
        | "events.k8s.io" => core::cells(&kind.name, object, now),
        _ => None,
    };
    known.unwrap_or_else(|| vec![meta(object, "name").into()])
}
