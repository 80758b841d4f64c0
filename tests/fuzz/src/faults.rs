//! Plans of faults, as files give them.

use innkeeper_faults::{FaultPlan, PlanFile};

/// The maximum length in bytes of an error and of a line about a fault.
const ERROR_BYTES_MAX: usize = 1000;

/// Reads a plan. What is read is printed as it was, and described in one line for each fault.
pub fn fuzz_entry(data: &[u8]) {
    match PlanFile::parse(data) {
        Err(error) => assert!(error.to_string().len() <= ERROR_BYTES_MAX, "{error}"),
        Ok(PlanFile::Sieve(_)) => {}
        Ok(PlanFile::Faults(plan)) => {
            let text = serde_json::to_string(&plan).expect("a plan is printed");
            let again = PlanFile::parse(text.as_bytes()).expect("a printed plan is read");
            assert_eq!(PlanFile::Faults(plan), again, "a plan changes when it is printed and read");
        }
    }
    let Ok(plan) = serde_json::from_slice::<FaultPlan>(data) else { return };
    let text = serde_json::to_string(&plan).expect("a plan is printed");
    let again: FaultPlan = serde_json::from_str(&text).expect("a printed plan is read");
    assert_eq!(plan, again, "a plan changes when it is printed and read");
    for fault in &plan.faults {
        assert!(!fault.to_string().is_empty());
    }
}
