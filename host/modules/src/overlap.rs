//! Whether two modules would reconcile the same primaries. One module controls a primary; two would
//! each undo the other's status for ever.

use std::collections::BTreeSet;

use innkeeper_core::PrimarySelector;

use crate::module::KindName;

/// Which primaries a module reconciles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PrimaryScope {
    pub(crate) primary: KindName,
    /// It decorates them: so may others.
    pub(crate) decorates: bool,
    /// Empty for all.
    pub(crate) namespaces: BTreeSet<String>,
    /// What the guest and the Module both select.
    pub(crate) selector: PrimarySelector,
}

impl PrimaryScope {
    /// Whether there may be a primary that both reconcile. Versions of one kind are one kind.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        !self.decorates
            && !other.decorates
            && self.primary.kind == other.primary.kind
            && group(&self.primary) == group(&other.primary)
            && (self.namespaces.is_empty()
                || other.namespaces.is_empty()
                || !self.namespaces.is_disjoint(&other.namespaces))
            && self.selector.overlaps(&other.selector)
    }
}

fn group(kind: &KindName) -> &str {
    kind.api_version.split_once('/').map_or("", |(group, _)| group)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn territory(api_version: &str, namespaces: &[&str], selector: &str) -> PrimaryScope {
        PrimaryScope {
            primary: KindName { api_version: api_version.into(), kind: "Podroute".into() },
            decorates: false,
            namespaces: namespaces.iter().map(|one| (*one).to_owned()).collect(),
            selector: PrimarySelector {
                labels: selector.parse().unwrap(),
                ..PrimarySelector::default()
            },
        }
    }

    #[test]
    fn one_kind_in_a_common_namespace_with_common_labels_is_contested() {
        let all = territory("quay.io/v1", &[], "");
        for (other, overlaps) in [
            (territory("quay.io/v1alpha1", &["a"], "x=1"), true),
            (territory("example.com/v1", &[], ""), false),
        ] {
            assert_eq!(all.overlaps(&other), overlaps, "{other:?}");
            assert_eq!(other.overlaps(&all), overlaps, "{other:?}");
        }
        let decorates = PrimaryScope { decorates: true, ..all.clone() };
        assert!(!all.overlaps(&decorates) && !decorates.overlaps(&all));
        assert!(!decorates.overlaps(&decorates), "any number decorate");
        let here = territory("quay.io/v1", &["a", "b"], "tier=web");
        for (namespaces, selector, overlaps) in [
            (&["b"][..], "", true),
            (&["c"][..], "", false),
            (&[][..], "tier=db", false),
            (&["a"][..], "tier in (db,web)", true),
        ] {
            let other = territory("quay.io/v1", namespaces, selector);
            assert_eq!(here.overlaps(&other), overlaps, "{other:?}");
        }
    }
}
