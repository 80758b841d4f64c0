//! The lines of `innkeeper modules describe` about the policy of a Module.

use innkeeper_modules::module::{PolicyAuditStatus, PolicyStatus};

use crate::out::Page;

/// Adds how the policy reviews, and what the audit of existing objects has found.
pub(super) fn add(page: &mut Page, policy: &PolicyStatus) {
    let mode = if policy.mode.is_empty() { "reviews nothing yet" } else { &policy.mode };
    let mut words = vec![policy.kind.clone(), mode.to_owned()];
    words.extend(policy.failure_policy.as_ref().map(|policy| format!("failurePolicy {policy}")));
    words.extend(policy.replicas.as_ref().map(|replicas| format!("on {replicas} replicas")));
    page.line(format_args!("Policy:     {}", words.join(", ")));
    if let Some(webhooks) = &policy.webhooks {
        page.line(format_args!("  {webhooks}"));
    }
    let Some(audit) = &policy.audit else { return };
    let PolicyAuditStatus { passed, denied, warned, failed, completed, problem } = audit;
    let state = match completed {
        Some(time) => format!("completed {time}"),
        None => "not completed yet".to_owned(),
    };
    page.line(format_args!(
        "Audit:      {passed} passed, {denied} denied, {warned} warned, {failed} failed; {state}"
    ));
    if let Some(problem) = problem {
        page.line(format_args!("  {problem}"));
    }
}
