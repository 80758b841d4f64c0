//! The coverage of a policy: which live replicas answer for it.
//!
//! A replica answers for a policy if it reviews with any record of it and has a certificate:
//! without one the API server cannot connect. A replica whose report cannot be read answers for
//! nothing, and may show any certificate.

use innkeeper_core::foreign;

use super::replica_report::{Replica, ReplicaReport};

/// How many bytes of a problem of a replica a message repeats.
const PROBLEM_BYTES_MAX: usize = 512;

/// The report of a replica to which the API server can connect.
fn reachable(replica: &Replica) -> Option<&ReplicaReport> {
    replica.report.as_ref().ok().filter(|report| report.certificate.is_some())
}

/// The id of the record with which a replica answers for a Module.
fn answer<'a>(replica: &'a Replica, module: &str) -> Option<&'a str> {
    reachable(replica)?.policies.get(module)?.id.as_deref()
}

/// Whether every replica answers for a Module, with any record. False without replicas.
pub(super) fn all_answer(replicas: &[Replica], module: &str) -> bool {
    !replicas.is_empty() && replicas.iter().all(|replica| answer(replica, module).is_some())
}

/// Whether at least one replica answers for a Module, with any record.
pub(super) fn any_answers(replicas: &[Replica], module: &str) -> bool {
    replicas.iter().any(|replica| answer(replica, module).is_some())
}

/// How many replicas answer with this record of a Module.
pub(super) fn reviewing(replicas: &[Replica], module: &str, id: &str) -> usize {
    replicas.iter().filter(|replica| answer(replica, module) == Some(id)).count()
}

/// How many reviews with this record of a Module have failed on all replicas, as they report it,
/// and why one of them did.
pub(super) fn failures(replicas: &[Replica], module: &str, id: &str) -> (u64, Option<String>) {
    let reports = replicas.iter().filter_map(|replica| replica.report.as_ref().ok());
    let of_record = reports
        .filter_map(|report| report.policies.get(module))
        .filter(|policy| policy.id.as_deref() == Some(id) && policy.failed > 0);
    let (mut failed, mut example) = (0_u64, None);
    for policy in of_record {
        failed = failed.saturating_add(policy.failed);
        example = example.or_else(|| Some(policy.example.clone()));
    }
    (failed, example)
}

/// Why the first replica that does not answer with this record of a Module does not, for people;
/// `None` if all do.
pub(super) fn first_not_reviewing(replicas: &[Replica], module: &str, id: &str) -> Option<String> {
    let lacking = replicas.iter().find(|replica| answer(replica, module) != Some(id))?;
    let why = match &lacking.report {
        Err(error) => error.to_string(),
        Ok(ReplicaReport { certificate: None, .. }) => {
            "it has no certificate, so the API server cannot reach it".to_owned()
        }
        Ok(report) => match report.policies.get(module) {
            Some(policy) if !policy.problem.is_empty() => policy.problem.clone(),
            Some(policy) if policy.id.is_some() => "it reviews with another record".to_owned(),
            _ => "it does not review with the policy yet".to_owned(),
        },
    };
    Some(foreign::one_line(format!("replica {}: {why}", lacking.name), PROBLEM_BYTES_MAX))
}

/// Whether every replica that shows a certificate shows this one, and at least one does.
pub(super) fn all_show(replicas: &[Replica], certificate: &str) -> bool {
    let is_readable = replicas.iter().all(|replica| replica.report.is_ok());
    let mut certificates =
        replicas.iter().filter_map(reachable).map(|report| report.certificate.as_deref());
    let has_one = replicas.iter().any(|replica| reachable(replica).is_some());
    is_readable && has_one && certificates.all(|one| one == Some(certificate))
}

#[cfg(test)]
mod tests {
    use super::super::replica_report::{PolicyReport, ReportError};
    use super::*;

    /// A replica with this certificate that reviews with this record of `labels`.
    fn replica(name: &str, certificate: Option<&str>, id: Option<&str>) -> Replica {
        let id = id.map(ToOwned::to_owned);
        let policies = [("labels".to_owned(), PolicyReport { id, ..PolicyReport::default() })];
        let certificate = certificate.map(ToOwned::to_owned);
        let report = ReplicaReport { certificate, policies: policies.into() };
        Replica { name: name.to_owned(), report: Ok(report) }
    }

    fn unreadable() -> Replica {
        Replica { name: "z".to_owned(), report: Err(ReportError::Missing) }
    }

    #[test]
    fn replica_answers_with_a_certificate_and_any_record() {
        let with = |id| replica("a", Some("c"), id);
        for (replicas, all, any, reviewing_now) in [
            (vec![], false, false, 0),
            (vec![with(Some("new"))], true, true, 1),
            (vec![with(Some("old"))], true, true, 0),
            (vec![with(None)], false, false, 0),
            (vec![replica("a", None, Some("new"))], false, false, 0),
            (vec![with(Some("new")), with(Some("old"))], true, true, 1),
            (vec![with(Some("new")), unreadable()], false, true, 1),
        ] {
            assert_eq!(all_answer(&replicas, "labels"), all, "{replicas:?}");
            assert_eq!(any_answers(&replicas, "labels"), any, "{replicas:?}");
            assert_eq!(reviewing(&replicas, "labels", "new"), reviewing_now, "{replicas:?}");
            assert!(!all_answer(&replicas, "other"), "{replicas:?}");
        }
    }

    #[test]
    fn failures_of_all_replicas_with_the_record_are_added_and_no_sum_overflows() {
        let failing = |name: &str, id: &str, failed: u64| {
            let mut replica = replica(name, None, Some(id));
            let policy = replica.report.as_mut().unwrap().policies.get_mut("labels").unwrap();
            (policy.failed, policy.example) = (failed, format!("{name} trapped"));
            replica
        };
        let replicas = [failing("a", "new", 0), failing("b", "new", 2), failing("c", "old", 9)];
        let example = Some("b trapped".to_owned());
        assert_eq!(failures(&replicas, "labels", "new"), (2, example));
        assert_eq!(failures(&replicas, "other", "new"), (0, None));
        let replicas = [failing("a", "new", u64::MAX), failing("b", "new", 2), unreadable()];
        assert_eq!(failures(&replicas, "labels", "new").0, u64::MAX);
    }

    #[test]
    fn replica_without_a_certificate_keeps_none_in_use_and_an_unreadable_one_any() {
        let with = |certificate| replica("a", certificate, None);
        for (replicas, expected) in [
            (vec![], false),
            (vec![with(None)], false),
            (vec![with(Some("c"))], true),
            (vec![with(Some("c")), with(None)], true),
            (vec![with(Some("c")), with(Some("d"))], false),
            (vec![with(Some("c")), unreadable()], false),
        ] {
            assert_eq!(all_show(&replicas, "c"), expected, "{replicas:?}");
        }
    }

    #[test]
    fn first_replica_that_lacks_a_record_is_named_with_the_reason() {
        let why = |replica: Replica| first_not_reviewing(&[replica], "labels", "new");
        assert_eq!(why(replica("a", Some("c"), Some("new"))), None);
        let mut failing = replica("a", Some("c"), Some("old"));
        let report = failing.report.as_mut().unwrap();
        report.policies.get_mut("labels").unwrap().problem = "no snapshot\u{1b}[2J".to_owned();
        let hostile = why(failing).unwrap();
        assert!(hostile.starts_with("replica a: no snapshot"), "{hostile}");
        assert!(!hostile.contains('\u{1b}'), "{hostile}");
        for (one, expected) in [
            (replica("b", Some("c"), Some("old")), "replica b: it reviews with another record"),
            (replica("b", Some("c"), None), "replica b: it does not review with the policy yet"),
            (
                replica("b", None, Some("new")),
                "replica b: it has no certificate, so the API server cannot reach it",
            ),
            (
                unreadable(),
                "replica z: its Lease has no annotation innkeeper.dev/replica; delete the Lease, and the replica writes it again",
            ),
        ] {
            assert_eq!(why(one).as_deref(), Some(expected));
        }
    }
}
