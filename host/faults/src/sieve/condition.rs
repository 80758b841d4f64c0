//! The conditions of triggers, and where they are observed.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::plan_error::PlanError;
use crate::sieve::resource_key::ResourceKey;

/// The maximum number of times that a condition has to hold.
const OCCURRENCE_MAX: u32 = 10_000;
/// The maximum time of a trigger and of a wait, in seconds.
pub(crate) const SECONDS_MAX: u64 = 3600;
/// The maximum length of a difference in bytes.
const DIFF_BYTES_MAX: usize = 64 * 1024;

/// A trigger: a condition with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct TriggerDefinition {
    /// The name, unique in its action.
    pub name: String,
    /// What has to happen.
    pub condition: Condition,
    /// How often it has to happen.
    pub occurrence: u32,
    /// Where it is observed. A time has no such place.
    pub observer: Option<Observer>,
}

/// What has to happen.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// The object is created.
    Create(ResourceKey),
    /// The object is deleted.
    Delete(ResourceKey),
    /// The object changes.
    Update {
        /// The object.
        key: ResourceKey,
        /// Which members change, with their values before and after; `None` for any change.
        change: Option<(Value, Value)>,
    },
    /// A member of the object has no longer the value that it has here.
    AnyFieldModification {
        /// The object.
        key: ResourceKey,
        /// The members with their values.
        members: Value,
    },
    /// Time passes since the trigger is waited for.
    Timeout(Duration),
}

/// Who observes a change, and whether before or after it takes effect there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observer {
    /// The cache of an API server.
    ApiServer {
        /// The name of the API server.
        name: String,
        /// Before the cache has the change.
        before: bool,
    },
    /// The watches of the client under test.
    Informer {
        /// Before the client has the change.
        before: bool,
    },
    /// A write of the client under test.
    Write {
        /// Before the API server carries it out.
        before: bool,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawDefinition {
    trigger_name: String,
    condition: RawCondition,
    observation_point: Option<RawPoint>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawCondition {
    condition_type: String,
    resource_key: Option<String>,
    occurrence: Option<u32>,
    prev_state_diff: Option<String>,
    cur_state_diff: Option<String>,
    /// Objects of the API have one form here.
    #[serde(rename = "convertStateToAPIForm")]
    _convert: Option<bool>,
    timeout_value: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawPoint {
    when: String,
    by: String,
}

impl TriggerDefinition {
    /// Reads a definition at a place of the plan.
    pub(crate) fn parse(document: &Value, place: &str) -> Result<Self, PlanError> {
        let refuse = |problem: String| PlanError::value(place, &problem);
        let type_ = &document["condition"]["conditionType"];
        if type_ == "onAnnotatedAPICall" {
            let problem = "onAnnotatedAPICall watches functions of the controller, which a served \
                           API does not see; use a write or a change of an object";
            return Err(refuse(problem.to_owned()));
        }
        let raw = RawDefinition::deserialize(document)
            .map_err(|error| refuse(format!("it has another form than a trigger: {error}")))?;
        let occurrence = raw.condition.occurrence.unwrap_or(1);
        if !(1..=OCCURRENCE_MAX).contains(&occurrence) {
            let problem = format!("occurrence is {occurrence}; write 1 to {OCCURRENCE_MAX}");
            return Err(refuse(problem));
        }
        let observer = raw.observation_point.as_ref().map(RawPoint::observer).transpose();
        let observer = observer.map_err(refuse)?;
        let condition = raw.condition.read().map_err(refuse)?;
        if observer.is_none() && !matches!(condition, Condition::Timeout(_)) {
            return Err(refuse("it has no observationPoint; add one".to_owned()));
        }
        Ok(Self { name: raw.trigger_name, condition, occurrence, observer })
    }
}

impl RawCondition {
    fn read(&self) -> Result<Condition, String> {
        let key = || match &self.resource_key {
            Some(key) => ResourceKey::parse(key),
            None => Err("it has no resourceKey; add one".to_owned()),
        };
        match self.condition_type.as_str() {
            "onObjectCreate" => key().map(Condition::Create),
            "onObjectDelete" => key().map(Condition::Delete),
            "onObjectUpdate" => {
                let change = match (&self.prev_state_diff, &self.cur_state_diff) {
                    (Some(before), Some(after)) => Some((members(before)?, members(after)?)),
                    _ => None,
                };
                Ok(Condition::Update { key: key()?, change })
            }
            "onAnyFieldModification" => {
                let text = self.prev_state_diff.as_deref();
                let text = text.ok_or("it has no prevStateDiff; add one")?;
                Ok(Condition::AnyFieldModification { key: key()?, members: members(text)? })
            }
            "onTimeout" => match self.timeout_value {
                Some(seconds) if seconds <= SECONDS_MAX => {
                    Ok(Condition::Timeout(Duration::from_secs(seconds)))
                }
                _ => Err(format!("timeoutValue has to be 0 to {SECONDS_MAX} seconds")),
            },
            other => Err(format!("the condition `{other}` is unknown")),
        }
    }
}

/// The members of a difference, which a plan gives as JSON in a text.
fn members(text: &str) -> Result<Value, String> {
    if text.len() > DIFF_BYTES_MAX {
        return Err(format!("a difference has at most {DIFF_BYTES_MAX} bytes"));
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(members)) => Ok(members.into()),
        Ok(_) => Err("a difference is a JSON object in a text".to_owned()),
        Err(error) => Err(format!("a difference is no JSON: {error}")),
    }
}

impl RawPoint {
    fn observer(&self) -> Result<Observer, String> {
        let name = || {
            if is_server_name(&self.by) {
                return Ok(self.by.clone());
            }
            Err(format!("`{}` is no name of an API server", self.by))
        };
        match self.when.as_str() {
            "beforeAPIServerRecv" => Ok(Observer::ApiServer { name: name()?, before: true }),
            "afterAPIServerRecv" => Ok(Observer::ApiServer { name: name()?, before: false }),
            "beforeControllerRecv" => Ok(Observer::Informer { before: true }),
            "afterControllerRecv" => Ok(Observer::Informer { before: false }),
            "beforeControllerWrite" => Ok(Observer::Write { before: true }),
            "afterControllerWrite" => Ok(Observer::Write { before: false }),
            other => Err(format!("`{other}` cannot be observed at a served API")),
        }
    }
}

/// Whether a text may name an API server: it becomes a part of the name of a kubeconfig.
pub(crate) fn is_server_name(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=63).contains(&text.len()) && text.chars().all(is_allowed)
}

impl Condition {
    /// The object that it is about.
    pub fn key(&self) -> Option<&ResourceKey> {
        match self {
            Self::Create(key)
            | Self::Delete(key)
            | Self::Update { key, .. }
            | Self::AnyFieldModification { key, .. } => Some(key),
            Self::Timeout(_) => None,
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create(key) => write!(f, "{key} is created"),
            Self::Delete(key) => write!(f, "{key} is deleted"),
            Self::Update { key, .. } => write!(f, "{key} changes"),
            Self::AnyFieldModification { key, .. } => write!(f, "a field of {key} changes"),
            Self::Timeout(time) => write!(f, "{} s pass", time.as_secs()),
        }
    }
}
