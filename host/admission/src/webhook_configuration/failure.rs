//! What happens to a request that the host does not answer.

use innkeeper_contract::PolicyKind;

use crate::mode::{FailurePolicy, Mode};

/// Which policies the live replicas have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Every live replica answers for the policy now.
    pub is_everywhere: bool,
    /// Every live replica did so before, since the Module first had the policy.
    pub was_everywhere: bool,
}

/// Returns what happens to a request that the host does not answer.
///
/// `asked` is what the Module says. `Fail` counts only once every live replica has answered for the
/// policy, or a new Module could stop the cluster. If the Module asks for it, it stays from then
/// on; as the default of a policy that validates it gives way to `Ignore` while a replica lacks the
/// policy.
pub fn effective_failure_policy(
    asked: Option<FailurePolicy>,
    kind: PolicyKind,
    mode: Mode,
    coverage: Coverage,
) -> FailurePolicy {
    let Coverage { is_everywhere, was_everywhere } = coverage;
    let fails = match (mode, asked, kind) {
        (Mode::Warn | Mode::Audit, _, _)
        | (Mode::Enforce, Some(FailurePolicy::Ignore), _)
        | (Mode::Enforce, None, PolicyKind::Mutate) => false,
        (Mode::Enforce, Some(FailurePolicy::Fail), _) => is_everywhere || was_everywhere,
        (Mode::Enforce, None, PolicyKind::Validate) => is_everywhere,
    };
    if fails { FailurePolicy::Fail } else { FailurePolicy::Ignore }
}

#[cfg(test)]
mod tests {
    use FailurePolicy::{Fail, Ignore};
    use Mode::{Audit, Enforce, Warn};
    use PolicyKind::{Mutate, Validate};

    use super::*;

    #[test]
    fn failure_policy_table() {
        let never = Coverage::default();
        let now = Coverage { is_everywhere: true, was_everywhere: true };
        let before = Coverage { is_everywhere: false, was_everywhere: true };
        for (asked, kind, mode, expected) in [
            // Expected in turn: never, now and before everywhere.
            (None, Validate, Enforce, [Ignore, Fail, Ignore]),
            (Some(Fail), Validate, Enforce, [Ignore, Fail, Fail]),
            (Some(Ignore), Validate, Enforce, [Ignore; 3]),
            (None, Mutate, Enforce, [Ignore; 3]),
            (Some(Fail), Mutate, Enforce, [Ignore, Fail, Fail]),
            (Some(Fail), Validate, Warn, [Ignore; 3]),
            (Some(Fail), Mutate, Audit, [Ignore; 3]),
            (None, Validate, Audit, [Ignore; 3]),
        ] {
            let effective = [never, now, before]
                .map(|coverage| effective_failure_policy(asked, kind, mode, coverage));
            assert_eq!(effective, expected, "{asked:?} {kind:?} {mode:?}");
        }
    }
}
