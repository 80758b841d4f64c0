//! A test plan of Sieve.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use crate::plan_error::PlanError;
use crate::sieve::action::{Action, ActionKind};
use crate::sieve::condition::Observer;

/// The maximum number of actions of a plan.
const ACTIONS_MAX: usize = 100;
/// The maximum number of API servers of a plan.
const SERVERS_MAX: usize = 4;

/// Actions that happen one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SievePlan {
    /// The actions.
    pub actions: Vec<Action>,
}

impl SievePlan {
    /// The API server to which the client under test connects first, as Sieve names it.
    pub const LEADING: &str = "kind-control-plane";

    /// Reads a plan.
    ///
    /// # Errors
    /// If the document has another form, or names what a served API cannot observe.
    pub fn parse(document: &Value) -> Result<Self, PlanError> {
        let members = document.as_object().ok_or(PlanError::Unknown)?;
        if let Some(name) =
            members.keys().find(|name| !matches!(name.as_str(), "workload" | "actions"))
        {
            return Err(PlanError::value(name, "a test plan has no such member"));
        }
        let actions = match &document["actions"] {
            Value::Null => &[],
            Value::Array(actions) => actions.as_slice(),
            _ => return Err(PlanError::value("actions", "it is no list")),
        };
        if actions.len() > ACTIONS_MAX {
            let problem = format!("there are {}; at most {ACTIONS_MAX} are allowed", actions.len());
            return Err(PlanError::value("actions", &problem));
        }
        let actions = actions.iter().enumerate();
        let actions = actions
            .map(|(index, action)| Action::parse(action.clone(), &format!("actions[{index}]")));
        let plan = Self { actions: actions.collect::<Result<_, _>>()? };
        if plan.servers().len() > SERVERS_MAX {
            let problem = format!("they name more than {SERVERS_MAX} API servers");
            return Err(PlanError::value("actions", &problem));
        }
        Ok(plan)
    }

    /// The names of the API servers, [`Self::LEADING`] first.
    pub fn servers(&self) -> Vec<String> {
        let mut others = BTreeSet::new();
        for action in &self.actions {
            match &action.kind {
                ActionKind::PauseApiServer { name, .. }
                | ActionKind::ResumeApiServer { name, .. }
                | ActionKind::ReconnectController { api_server: name } => {
                    others.insert(name.clone());
                }
                _ => {}
            }
            for trigger in &action.triggers {
                if let Some(Observer::ApiServer { name, .. }) = &trigger.observer {
                    others.insert(name.clone());
                }
            }
        }
        others.remove(Self::LEADING);
        std::iter::once(Self::LEADING.to_owned()).chain(others).collect()
    }

    /// Whether an action restarts the client under test.
    pub fn restarts(&self) -> bool {
        let restarts = |action: &Action| {
            matches!(
                action.kind,
                ActionKind::RestartController | ActionKind::ReconnectController { .. }
            )
        };
        self.actions.iter().any(restarts)
    }
}

/// A line for each action.
impl fmt::Display for SievePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for action in &self.actions {
            let conditions: Vec<String> =
                action.triggers.iter().map(|trigger| trigger.condition.to_string()).collect();
            writeln!(f, "{}, after: {}", action.kind, conditions.join("; "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail by it")]
mod tests {
    use serde_json::json;

    use super::*;

    fn action() -> Value {
        json!({
            "actionType": "restartController", "controllerLabel": "operator",
            "trigger": {
                "definitions": [{
                    "triggerName": "trigger1",
                    "condition": {"conditionType": "onObjectDelete", "occurrence": 1,
                        "resourceKey": "statefulset/default/web"},
                    "observationPoint": {"when": "afterControllerWrite", "by": "Reconcile"},
                }],
                "expression": "trigger1",
            },
        })
    }

    fn error(change: impl FnOnce(&mut Value)) -> String {
        let mut action = action();
        change(&mut action);
        SievePlan::parse(&json!({"workload": "w", "actions": [action]})).unwrap_err().to_string()
    }

    #[test]
    fn plan_without_actions_is_read() {
        let plan = SievePlan::parse(&json!({"workload": "recreate", "actions": null})).unwrap();
        assert_eq!((plan.actions.len(), plan.restarts()), (0, false));
        assert_eq!(plan.servers(), ["kind-control-plane"]);
    }

    #[test]
    fn action_is_described_with_its_triggers() {
        let plan = SievePlan::parse(&json!({"actions": [action()]})).unwrap();
        assert!(plan.restarts());
        assert_eq!(
            plan.to_string(),
            "the client restarts, after: statefulset/default/web is deleted\n"
        );
    }

    #[test]
    fn hostile_value_is_refused_with_its_place() {
        let at = |text: String, place: &str| {
            assert!(text.starts_with(place), "{text}");
            assert!(text.len() < 400, "{text}");
        };
        let place = "actions[0].trigger.definitions[0]: ";
        at(error(|a| a["actionType"] = json!("explode")), "actions[0]: the action `explode`");
        at(error(|a| a["waitBefore"] = json!(3601)), "actions[0]: a wait has at most");
        at(error(|a| a["waitBefore"] = json!(-1)), "actions[0]: it has another form");
        at(error(|a| a["extra"] = json!(1)), "actions[0]: it has another form");
        at(error(|a| a["trigger"]["expression"] = json!("trigger2")), "actions[0]: ");
        let of = |name: &str, value: Value| {
            error(|a| a["trigger"]["definitions"][0]["condition"][name] = value)
        };
        at(of("resourceKey", json!("statefulset")), place);
        at(of("occurrence", json!(0)), place);
        at(of("conditionType", json!("onAnnotatedAPICall")), place);
        at(of("conditionType", json!("onTimeout")), place);
        at(of("conditionType", json!("onAnyFieldModification")), place);
        let reconnect = |name: &str| {
            error(|a| {
                a["actionType"] = json!("reconnectController");
                a["reconnectAPIServer"] = json!(name);
            })
        };
        at(reconnect("../../etc/passwd"), "actions[0]: `../../etc/passwd` is no name");
        let many = json!({"actions": vec![action(); ACTIONS_MAX + 1]});
        at(SievePlan::parse(&many).unwrap_err().to_string(), "actions: there are 101");
    }
}
