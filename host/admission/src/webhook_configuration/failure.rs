//! The failure policy of a webhook: what the API server does with a request that no replica
//! answers.

use innkeeper_contract::PolicyKind;

use crate::mode::FailurePolicy;

/// Whether the live replicas answer for a policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Every live replica answers for the policy now.
    pub is_everywhere: bool,
    /// Every live replica did so before, since the Module first had the policy.
    pub was_everywhere: bool,
}

/// Returns the failure policy of a policy where its mode is `Enforce`; in the other modes it is
/// always `Ignore`.
///
/// `spec` is `spec.policy.failurePolicy` of the Module. `Fail` applies only once every live replica
/// has answered for the policy, or a new Module could stop the cluster. If the Module sets `Fail`,
/// it stays from then on. As the default of a policy that validates, it gives way to `Ignore` while
/// a replica lacks the policy.
pub fn effective_failure_policy(
    spec: Option<FailurePolicy>,
    kind: PolicyKind,
    coverage: Coverage,
) -> FailurePolicy {
    let Coverage { is_everywhere, was_everywhere } = coverage;
    let fails = match (spec, kind) {
        (Some(FailurePolicy::Ignore), _) | (None, PolicyKind::Mutate) => false,
        (Some(FailurePolicy::Fail), _) => is_everywhere || was_everywhere,
        (None, PolicyKind::Validate) => is_everywhere,
    };
    if fails { FailurePolicy::Fail } else { FailurePolicy::Ignore }
}

#[cfg(test)]
mod tests {
    use FailurePolicy::{Fail, Ignore};
    use PolicyKind::{Mutate, Validate};

    use super::*;

    #[test]
    fn failure_policy_follows_the_module_and_the_replicas() {
        let never = Coverage::default();
        let now = Coverage { is_everywhere: true, was_everywhere: true };
        let before = Coverage { is_everywhere: false, was_everywhere: true };
        for (spec, kind, expected) in [
            // Expected in turn: never, now and before everywhere.
            (None, Validate, [Ignore, Fail, Ignore]),
            (Some(Fail), Validate, [Ignore, Fail, Fail]),
            (Some(Ignore), Validate, [Ignore; 3]),
            (None, Mutate, [Ignore; 3]),
            (Some(Fail), Mutate, [Ignore, Fail, Fail]),
        ] {
            let effective =
                [never, now, before].map(|coverage| effective_failure_policy(spec, kind, coverage));
            assert_eq!(effective, expected, "{spec:?} {kind:?}");
        }
    }
}
