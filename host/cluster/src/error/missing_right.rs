//! Which right a refused write lacks, if it is for lack of a right. The API server answers 403 for
//! quotas and policies as well, and says which of them in its text only.

/// A right that a refused write lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingRight {
    /// The verb on the resource.
    Verb,
    /// The rights that a role or its binding would grant, or the verb that lifts this check
    /// (`escalate` or `bind`).
    Granted,
    /// `update` on the finalizers of the owner: the admission plugin
    /// `OwnerReferencesPermissionEnforcement` asks for it.
    OwnerFinalizers,
}

impl MissingRight {
    /// The right that a write lacks, from the message of a 403; `None` if admission refused it.
    pub(super) fn of(message: &str) -> Option<Self> {
        let why = reason(message)?;
        if why.starts_with("User ") && why.contains(" cannot ") {
            Some(Self::Verb)
        } else if why.starts_with("user ")
            && why.contains(" is attempting to grant RBAC permissions")
        {
            Some(Self::Granted)
        } else if why.starts_with("cannot set blockOwnerDeletion") {
            Some(Self::OwnerFinalizers)
        } else {
            None
        }
    }
}

/// What the API server says after `configmaps "a" is forbidden:`. Messages of webhooks begin
/// otherwise, and may quote what a tenant has written.
fn reason(message: &str) -> Option<&str> {
    let (subject, why) = message.split_once(" is forbidden:")?;
    let (resource, name) = subject.split_once(' ').unwrap_or((subject, "\"\""));
    let name = name.strip_prefix('"')?.strip_suffix('"')?;
    let is_plain = !resource.is_empty() && !name.contains(['"', '\\', ' ']);
    is_plain.then(|| why.trim_start())
}

/// The verb that the authorizer names in the message of a 403: an apply that creates needs
/// `create` as well as `patch`.
pub(super) fn denied_verb(message: &str) -> Option<&str> {
    let why = reason(message)?.strip_prefix("User ")?;
    let (verb, _) = why.split_once(" cannot ")?.1.split_once(" resource ")?;
    (!verb.contains(' ')).then_some(verb)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_right_differs_from_a_refusal_by_admission() {
        for (message, expected) in [
            (
                r#"configmaps "a" is forbidden: User "system:serviceaccount:default:x" cannot create resource "configmaps" in API group "" in the namespace "default""#,
                Some(MissingRight::Verb),
            ),
            (
                r#"roles.rbac.authorization.k8s.io "a" is forbidden: user "system:serviceaccount:default:x" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:"#,
                Some(MissingRight::Granted),
            ),
            (
                r#"services "a" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>"#,
                Some(MissingRight::OwnerFinalizers),
            ),
            (
                r#"pods "a" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"#,
                None,
            ),
            (r#"pods "a" is forbidden: violates PodSecurity "restricted:latest": hostPort"#, None),
            (r#"admission webhook "x.example" denied the request: User "a" cannot do it"#, None),
            (
                r#"admission webhook "x.example" denied the request: configmaps "a" is forbidden: User "a" cannot create resource "b""#,
                None,
            ),
            (
                r#"roles "a\" is forbidden: User \"a\" cannot create resource b" is forbidden: exceeded quota: q"#,
                None,
            ),
            (
                r#"configmaps "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: "a" is forbidden: User "a" cannot"#,
                None,
            ),
        ] {
            assert_eq!(MissingRight::of(message), expected, "{message}");
        }
    }

    #[test]
    fn denied_verb_is_the_one_that_the_authorizer_names() {
        let message = r#"configmaps "a" is forbidden: User "x" cannot create resource "configmaps" in API group """#;
        assert_eq!(denied_verb(message), Some("create"));
        assert_eq!(denied_verb(r#"pods "a" is forbidden: exceeded quota: q"#), None);
    }
}
