//! The actions of a plan: what happens once their triggers hold.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::plan_error::PlanError;
use crate::sieve::condition::{SECONDS_MAX, TriggerDefinition, is_server_name};
use crate::sieve::expression::Expression;
use crate::sieve::resource_key::ResourceKey;

/// The maximum number of triggers of an action.
const TRIGGERS_MAX: usize = 32;

/// An action.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// What happens.
    pub kind: ActionKind,
    /// The time from the trigger to the action.
    pub wait_before: Duration,
    /// The time from the action to when the next one is waited for.
    pub wait_after: Duration,
    /// The triggers that the expression names.
    pub triggers: Vec<TriggerDefinition>,
    /// Which of them have to be satisfied.
    pub expression: Expression,
}

/// What happens. A scope is one object; without one it is everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionKind {
    /// What an API server shows of the kind stays as it is from the next change of the scope on.
    PauseApiServer {
        /// Its name.
        name: String,
        /// The scope.
        scope: Option<ResourceKey>,
    },
    /// The API server shows the present state again.
    ResumeApiServer {
        /// Its name.
        name: String,
        /// The scope.
        scope: Option<ResourceKey>,
    },
    /// Requests of the client under test wait.
    PauseController {
        /// Which, and whether before or after the API server carries them out.
        at: PausePoint,
        /// The scope.
        scope: Option<ResourceKey>,
    },
    /// Requests of the client go on.
    ResumeController {
        /// Which.
        at: PausePoint,
        /// The scope.
        scope: Option<ResourceKey>,
    },
    /// The client is killed and started again.
    RestartController,
    /// The same, with the kubeconfig of another API server.
    ReconnectController {
        /// Its name.
        api_server: String,
    },
}

/// Where a client is paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PausePoint {
    /// Before the API server carries out a write.
    BeforeWrite,
    /// Before the client gets the answer to a write.
    AfterWrite,
    /// Before the client reads: its gets and lists wait, and its watches deliver nothing.
    BeforeRead,
    /// The same: what was read has an effect only once the client has it.
    AfterRead,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawAction {
    action_type: String,
    trigger: RawTrigger,
    wait_before: Option<u64>,
    wait_after: Option<u64>,
    #[serde(rename = "apiServerName")]
    api_server_name: Option<String>,
    pause_scope: Option<String>,
    pause_at: Option<String>,
    #[serde(rename = "reconnectAPIServer")]
    reconnect_api_server: Option<String>,
    /// There is one client, and nothing else waits for an action.
    #[serde(rename = "controllerLabel")]
    _controller_label: Option<String>,
    #[serde(rename = "async")]
    _async: Option<bool>,
    #[serde(rename = "avoidOngoingRead")]
    _avoid_ongoing_read: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawTrigger {
    definitions: Vec<Value>,
    expression: String,
}

impl Action {
    /// Reads an action at a place of the plan.
    pub(crate) fn parse(document: Value, place: &str) -> Result<Self, PlanError> {
        let refuse = |problem: String| PlanError::value(place, &problem);
        let raw = RawAction::deserialize(document)
            .map_err(|error| refuse(format!("it has another form than an action: {error}")))?;
        let kind = raw.kind().map_err(refuse)?;
        let wait = |seconds: Option<u64>| match seconds.unwrap_or_default() {
            seconds if seconds <= SECONDS_MAX => Ok(Duration::from_secs(seconds)),
            _ => Err(refuse(format!("a wait has at most {SECONDS_MAX} seconds"))),
        };
        let (wait_before, wait_after) = (wait(raw.wait_before)?, wait(raw.wait_after)?);
        if raw.trigger.definitions.len() > TRIGGERS_MAX {
            return Err(refuse(format!("it has more than {TRIGGERS_MAX} triggers")));
        }
        let definitions = raw.trigger.definitions.iter().enumerate();
        let triggers = definitions.map(|(index, definition)| {
            let place = format!("{place}.trigger.definitions[{index}]");
            TriggerDefinition::parse(definition, &place)
        });
        let triggers = triggers.collect::<Result<Vec<_>, _>>()?;
        for (index, trigger) in triggers.iter().enumerate() {
            if triggers[..index].iter().any(|other| other.name == trigger.name) {
                return Err(refuse(format!("the trigger `{}` is defined twice", trigger.name)));
            }
        }
        let expression = Expression::parse(&raw.trigger.expression, &mut |name| {
            triggers.iter().position(|trigger| trigger.name == name)
        });
        let expression = expression.map_err(|error| refuse(error.to_string()))?;
        Ok(Self { kind, wait_before, wait_after, triggers, expression })
    }
}

impl RawAction {
    fn kind(&self) -> Result<ActionKind, String> {
        let server = |name: &Option<String>| match name {
            Some(name) if is_server_name(name) => Ok(name.clone()),
            Some(name) => Err(format!("`{name}` is no name of an API server")),
            None => Err("it names no API server".to_owned()),
        };
        let scope = || match self.pause_scope.as_deref() {
            None | Some("all") => Ok(None),
            Some(key) => ResourceKey::parse(key).map(Some),
        };
        let at = || match self.pause_at.as_deref() {
            Some("beforeControllerWrite") => Ok(PausePoint::BeforeWrite),
            Some("afterControllerWrite") => Ok(PausePoint::AfterWrite),
            Some("beforeControllerRead") => Ok(PausePoint::BeforeRead),
            Some("afterControllerRead") => Ok(PausePoint::AfterRead),
            Some(other) => Err(format!("a pause at `{other}` is unknown")),
            None => Err("it has no pauseAt; add one".to_owned()),
        };
        Ok(match self.action_type.as_str() {
            "pauseAPIServer" => {
                let name = server(&self.api_server_name)?;
                if scope()?.is_none() {
                    return Err(
                        "a pause of an API server needs a pauseScope with one object".into()
                    );
                }
                ActionKind::PauseApiServer { name, scope: scope()? }
            }
            "resumeAPIServer" => ActionKind::ResumeApiServer {
                name: server(&self.api_server_name)?,
                scope: scope()?,
            },
            "pauseController" => ActionKind::PauseController { at: at()?, scope: scope()? },
            "resumeController" => ActionKind::ResumeController { at: at()?, scope: scope()? },
            "restartController" => ActionKind::RestartController,
            "reconnectController" => {
                let api_server = server(&self.reconnect_api_server)?;
                ActionKind::ReconnectController { api_server }
            }
            other => return Err(format!("the action `{other}` is unknown")),
        })
    }
}

impl fmt::Display for ActionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |scope: &Option<ResourceKey>| match scope {
            Some(key) => key.to_string(),
            None => "everything".to_owned(),
        };
        match self {
            Self::PauseApiServer { name, scope } => {
                write!(f, "the API server {name} pauses for {}", of(scope))
            }
            Self::ResumeApiServer { name, scope } => {
                write!(f, "the API server {name} resumes for {}", of(scope))
            }
            Self::PauseController { at, scope } => {
                write!(f, "the client pauses {at} {}", of(scope))
            }
            Self::ResumeController { at, scope } => {
                write!(f, "the client resumes {at} {}", of(scope))
            }
            Self::RestartController => f.write_str("the client restarts"),
            Self::ReconnectController { api_server } => {
                write!(f, "the client restarts at the API server {api_server}")
            }
        }
    }
}

impl fmt::Display for PausePoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BeforeWrite => "before writes of",
            Self::AfterWrite => "after writes of",
            Self::BeforeRead => "before reads of",
            Self::AfterRead => "after reads of",
        })
    }
}
