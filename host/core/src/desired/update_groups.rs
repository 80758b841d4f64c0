//! The update groups of a `desired` document: their checks, and the group of an object.

use std::collections::BTreeSet;

use innkeeper_contract::{Policy, StatusCheck, UpdateGroup};

use super::error::InvalidDesired;
use crate::{foreign, guest_status, names};

/// The most update groups of a document.
const GROUPS_MAX: usize = 32;

/// The most status checks of a group.
const CHECKS_MAX: usize = 16;

/// The longest `minReadySeconds`: one day.
const MIN_READY_SECONDS_MAX: u32 = 86_400;

/// The longest `progressDeadlineSeconds`: one week.
const DEADLINE_SECONDS_MAX: u32 = 604_800;

/// How many bytes of the name of a group an error quotes: as many as a valid one has.
const QUOTED_BYTES_MAX: usize = 63;

/// Reads the update groups of a document.
///
/// # Errors
/// Returns the first violation of the contract.
pub(super) fn read(groups: &[UpdateGroup]) -> Result<Vec<UpdateGroup>, InvalidDesired> {
    if groups.len() > GROUPS_MAX {
        return Err(InvalidDesired::Malformed {
            what: "updateGroups".to_owned(),
            problem: format!("{} groups are more than {GROUPS_MAX}", groups.len()),
        });
    }
    let mut names = BTreeSet::new();
    for (index, group) in groups.iter().enumerate() {
        let problem = if names.insert(&group.name) {
            problem_of(group)
        } else {
            Some(format!("the name {} is taken by another group", quoted(&group.name)))
        };
        if let Some(problem) = problem {
            return Err(InvalidDesired::Malformed {
                what: format!("updateGroups[{index}]"),
                problem,
            });
        }
    }
    Ok(groups.to_vec())
}

/// Finds the update group of an object among those that [`read`] returned.
///
/// # Errors
/// Returns why the object cannot be in the group.
pub(super) fn group_of<'a>(
    desired: &innkeeper_contract::DesiredObject,
    groups: &'a [UpdateGroup],
) -> Result<Option<&'a UpdateGroup>, String> {
    let Some(name) = &desired.update_group else { return Ok(None) };
    let Some(group) = groups.iter().find(|group| group.name == *name) else {
        return Err(format!("updateGroup {} is not in updateGroups", quoted(name)));
    };
    for (policy, name) in [(Policy::Merge, "merge"), (Policy::CreateOnly, "create-only")] {
        if desired.policy.contains(&policy) {
            return Err(format!(
                "the policy {name} excludes updateGroup; leave one of them out, or use the method OnDelete"
            ));
        }
    }
    Ok(Some(group))
}

/// Why a group breaks the contract, if it does.
fn problem_of(group: &UpdateGroup) -> Option<String> {
    if !names::is_label(&group.name) {
        return Some(format!("the name {} is not a DNS label", quoted(&group.name)));
    }
    if !group.method.is_rolling() {
        let rolling = [
            ("maxUnavailable", group.max_unavailable.is_some()),
            ("minReadySeconds", group.min_ready_seconds > 0),
            ("progressDeadlineSeconds", group.progress_deadline_seconds.is_some()),
            ("statusChecks", !group.status_checks.is_empty()),
        ];
        let (member, _) = rolling.into_iter().find(|(_, is_given)| *is_given)?;
        return Some(format!(
            "{member} needs the method RollingInPlace or RollingRecreate, not {}",
            group.method
        ));
    }
    if group.min_ready_seconds > MIN_READY_SECONDS_MAX {
        return Some(format!("minReadySeconds is more than {MIN_READY_SECONDS_MAX}"));
    }
    if let Some(deadline) = group.progress_deadline_seconds
        && !(group.min_ready_seconds + 1..=DEADLINE_SECONDS_MAX).contains(&deadline)
    {
        return Some(format!(
            "progressDeadlineSeconds is not more than minReadySeconds and at most {DEADLINE_SECONDS_MAX}"
        ));
    }
    if group.status_checks.len() > CHECKS_MAX {
        return Some(format!("statusChecks has more than {CHECKS_MAX} items"));
    }
    group.status_checks.iter().enumerate().find_map(|(index, check)| {
        problem_of_check(check).map(|problem| format!("statusChecks[{index}].{problem}"))
    })
}

fn problem_of_check(check: &StatusCheck) -> Option<&'static str> {
    if !guest_status::is_type(&check.type_) {
        return Some("type is not a word like Ready or example.com/Ready");
    }
    let reason = check.reason.as_deref()?;
    (!guest_status::is_reason(reason)).then_some("reason is not a CamelCase word")
}

/// A name for an error, as visible text of bounded length.
fn quoted(name: &str) -> String {
    format!("\"{}\"", foreign::one_line(name, QUOTED_BYTES_MAX))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::{Value, from_value, json};

    use super::*;

    fn check(groups: &Value) -> Result<Vec<UpdateGroup>, InvalidDesired> {
        read(&from_value::<Vec<UpdateGroup>>(groups.clone()).unwrap())
    }

    fn refused(group: &Value, expected: &Expect) {
        let refusal = check(&json!([group])).unwrap_err();
        assert_eq!(refusal.reason(), "MalformedObject");
        expected.assert_eq(&refusal.to_string());
    }

    #[test]
    fn groups_within_the_limits_are_read_in_their_order() {
        let groups = json!([
            {"name": "pods", "method": "RollingRecreate", "maxUnavailable": "25%", "minReadySeconds": 86_400,
                "progressDeadlineSeconds": 604_800, "statusChecks": [{"type": "example.com/Ready", "reason": "Serving"}]},
            {"name": "a", "method": "OnDelete", "paused": true},
        ]);
        let names: Vec<_> = check(&groups).unwrap().into_iter().map(|one| one.name).collect();
        assert_eq!(names, ["pods", "a"]);
    }

    #[test]
    fn number_out_of_its_range_is_refused() {
        refused(
            &json!({"name": "a", "method": "RollingInPlace", "minReadySeconds": 86_401}),
            &expect![
                "the guest gave an unusable object (updateGroups[0]): minReadySeconds is more than 86400"
            ],
        );
        for deadline in [0, 10, 604_801] {
            refused(
                &json!({"name": "a", "method": "RollingInPlace", "minReadySeconds": 10, "progressDeadlineSeconds": deadline}),
                &expect![
                    "the guest gave an unusable object (updateGroups[0]): progressDeadlineSeconds is not more than minReadySeconds and at most 604800"
                ],
            );
        }
        let groups: Vec<Value> =
            (0..33).map(|n| json!({"name": format!("g{n}"), "method": "InPlace"})).collect();
        let refusal = check(&json!(groups)).unwrap_err().to_string();
        assert!(refusal.ends_with("33 groups are more than 32"), "{refusal}");
        let checks: Vec<Value> = (0..17).map(|_| json!({"type": "Ready"})).collect();
        refused(
            &json!({"name": "a", "method": "RollingInPlace", "statusChecks": checks}),
            &expect![
                "the guest gave an unusable object (updateGroups[0]): statusChecks has more than 16 items"
            ],
        );
    }

    #[test]
    fn name_that_is_taken_or_no_label_is_refused_and_quoted_in_part() {
        let same = json!([{"name": "a", "method": "InPlace"}, {"name": "a", "method": "OnDelete"}]);
        let refusal = check(&same).unwrap_err().to_string();
        assert!(refusal.ends_with("(updateGroups[1]): the name \"a\" is taken by another group"));
        for name in ["", "A", "a.b", "a\u{1b}[31m", &"a".repeat(1 << 20)] {
            let refusal = check(&json!([{"name": name, "method": "InPlace"}])).unwrap_err();
            let refusal = refusal.to_string();
            assert!(refusal.contains("is not a DNS label") && refusal.len() < 300, "{refusal}");
            assert!(!refusal.contains('\u{1b}'));
        }
    }

    #[test]
    fn rolling_member_without_a_rolling_method_is_refused() {
        for member in [
            json!({"maxUnavailable": 1}),
            json!({"minReadySeconds": 1}),
            json!({"progressDeadlineSeconds": 1}),
            json!({"statusChecks": [{"type": "Ready"}]}),
        ] {
            for method in ["OnDelete", "InPlace", "Recreate"] {
                let mut group = member.clone();
                group["name"] = "a".into();
                group["method"] = method.into();
                let refusal = check(&json!([group])).unwrap_err().to_string();
                assert!(refusal.contains("needs the method RollingInPlace"), "{refusal}");
            }
        }
    }

    #[test]
    fn status_check_that_no_condition_can_meet_is_refused() {
        for (status_check, problem) in [
            (json!({"type": ""}), "statusChecks[0].type is not a word"),
            (json!({"type": "Ready\u{1b}"}), "statusChecks[0].type is not a word"),
            (json!({"type": "a".repeat(317)}), "statusChecks[0].type is not a word"),
            (json!({"type": "Ready", "reason": "not it"}), "statusChecks[0].reason is not"),
        ] {
            let group =
                json!({"name": "a", "method": "RollingInPlace", "statusChecks": [status_check]});
            let refusal = check(&json!([group])).unwrap_err().to_string();
            assert!(refusal.contains(problem), "{refusal}");
        }
    }

    #[test]
    fn object_of_an_unknown_group_or_with_an_excluded_policy_is_refused() {
        let groups = check(&json!([{"name": "pods", "method": "InPlace"}])).unwrap();
        let group_of = |value: Value| group_of(&from_value(value).unwrap(), &groups);
        assert_eq!(group_of(json!({"object": {}})).unwrap(), None);
        let found = group_of(json!({"object": {}, "updateGroup": "pods", "policy": ["deletable"]}));
        assert_eq!(found.unwrap().unwrap().name, "pods");
        let unknown = group_of(json!({"object": {}, "updateGroup": "pod"})).unwrap_err();
        assert_eq!(unknown, "updateGroup \"pod\" is not in updateGroups");
        for policy in ["merge", "create-only"] {
            let value = json!({"object": {}, "updateGroup": "pods", "policy": [policy]});
            assert!(group_of(value).unwrap_err().contains("excludes updateGroup"), "{policy}");
        }
    }
}
