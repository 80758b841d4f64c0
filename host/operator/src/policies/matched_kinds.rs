//! The kinds whose existing objects the rules of a policy match, as the API server serves them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use innkeeper_cluster::{ApiClient, ApiError};
use innkeeper_contract::{GroupVersionResource, Kind, Operation, PolicyRule};
use innkeeper_core::foreign;
use innkeeper_core::review_scope::is_never_reviewed;

/// The most kinds of one policy: each has a cache of its own.
pub const KINDS_MAX: usize = 64;

/// The maximum age of an answer of discovery.
const AGE_MAX: Duration = Duration::from_mins(1);

/// The longest reason why objects are left out, in bytes.
const REASON_BYTES_MAX: usize = 300;

/// Objects that are not reviewed, although a rule matches them, and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeftOut {
    /// The resource, as in `deployments.apps`, or a group and version.
    pub what: String,
    /// Why, in one line.
    pub why: String,
}

impl LeftOut {
    /// Objects that are left out for this reason.
    pub fn new(what: impl Into<String>, why: impl std::fmt::Display) -> Self {
        Self { what: what.into(), why: foreign::one_line(why, REASON_BYTES_MAX) }
    }
}

/// The kinds that the rules of a policy match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchedKinds {
    /// The kinds, by group and plural, each once in the preferred version that a rule takes.
    pub kinds: Vec<Kind>,
    /// What is left out.
    pub left_out: Vec<LeftOut>,
}

/// Looks the kinds up in discovery, as the host: those that a rule matches with CREATE or UPDATE,
/// at most [`KINDS_MAX`].
///
/// # Errors
/// If discovery does not say which groups there are.
pub async fn matched_kinds(
    host: &ApiClient,
    rules: &[PolicyRule],
) -> Result<MatchedKinds, ApiError> {
    let discovery = host.discovery();
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    if rules.iter().flat_map(|rule| &rule.groups).any(|group| !group.is_empty()) {
        groups = discovery.groups().await?;
    }
    groups.insert(String::new(), vec!["v1".to_owned()]);
    groups.retain(|group, _| {
        let of_rule = |rule: &PolicyRule| rule.groups.iter().any(|of| of == "*" || of == group);
        !is_never_reviewed(group) && rules.iter().any(of_rule)
    });
    let mut matched = MatchedKinds::default();
    let mut seen = BTreeSet::new();
    for (group, versions) in &groups {
        for version in versions {
            let api_version = match &**group {
                "" => version.clone(),
                group => format!("{group}/{version}"),
            };
            let mut kinds = match discovery.listable(&api_version, AGE_MAX).await {
                Ok(kinds) => kinds,
                Err(error) => {
                    matched.left_out.push(LeftOut::new(api_version, error));
                    continue;
                }
            };
            kinds.retain(|kind| rules.iter().any(|rule| is_matched(rule, kind)));
            for kind in kinds {
                if !seen.insert((group.clone(), kind.plural.clone())) {
                    continue;
                }
                if matched.kinds.len() < KINDS_MAX {
                    matched.kinds.push(kind);
                } else {
                    let why = format_args!("the rules match more than {KINDS_MAX} kinds");
                    matched.left_out.push(LeftOut::new(kind.resource(), why));
                }
            }
        }
    }
    Ok(matched)
}

/// Whether a rule matches objects of a kind when they are created or updated.
pub fn is_matched(rule: &PolicyRule, kind: &Kind) -> bool {
    let resource = GroupVersionResource {
        group: kind.group().to_owned(),
        version: kind.version().to_owned(),
        resource: kind.plural.clone(),
    };
    let namespace = if kind.is_namespaced() { "any" } else { "" };
    [Operation::Create, Operation::Update]
        .into_iter()
        .any(|operation| rule.matches(operation, &resource, "", namespace))
}
