//! Plans of faults, as files give them.

use innkeeper_faults::FaultPlan;

/// Reads a plan. What is read is printed as it was, and described in one line for each fault.
pub fn fuzz_entry(data: &[u8]) {
    let Ok(plan) = serde_json::from_slice::<FaultPlan>(data) else { return };
    let text = serde_json::to_string(&plan).expect("a plan is printed");
    let again: FaultPlan = serde_json::from_str(&text).expect("a printed plan is read");
    assert_eq!(plan, again, "a plan changes when it is printed and read");
    for fault in &plan.faults {
        assert!(!fault.to_string().is_empty());
    }
}
