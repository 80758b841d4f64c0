//! The status of a Pod as a kubelet writes it.

use serde_json::{Value, json};

use crate::types::members::{condition, number, text};
use crate::types::object::generation;

/// The state of a Pod's containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State<'a> {
    /// They wait, for a reason, with a message.
    Waiting(&'a str, &'a str),
    /// They run, and may be ready.
    Running { is_ready: bool },
    /// They have ended.
    Ended { code: i64 },
}

/// The status to write.
pub(crate) struct Written<'a> {
    pub(crate) pod: &'a Value,
    pub(crate) now: &'a str,
    pub(crate) state: State<'a>,
    /// Whether the Pod has ended, or a container will restart.
    pub(crate) is_over: bool,
    pub(crate) address: &'a str,
}

/// The address of the one node.
const HOST: &str = "10.0.0.1";

impl Written<'_> {
    /// The whole status.
    pub(crate) fn status(&self) -> Value {
        let old = &self.pod["status"];
        let phase = match self.state {
            State::Ended { code } if self.is_over => {
                if code == 0 {
                    "Succeeded"
                } else {
                    "Failed"
                }
            }
            State::Waiting(..) if old["phase"] != "Running" => "Pending",
            _ => "Running",
        };
        let mut status = json!({
            "phase": phase,
            "qosClass": old.get("qosClass").cloned().unwrap_or_else(|| "BestEffort".into()),
            "hostIP": HOST, "hostIPs": [{"ip": HOST}],
            "startTime": old.get("startTime").cloned().unwrap_or_else(|| self.now.into()),
            "observedGeneration": generation(self.pod),
            "conditions": self.conditions(phase),
            "containerStatuses": self.containers("containers", "containerStatuses"),
        });
        if !self.pod["spec"]["initContainers"].is_null() {
            status["initContainerStatuses"] = self.init_containers();
        }
        let address = match old["podIP"].as_str() {
            Some(address) => address,
            None if matches!(self.state, State::Waiting(..)) => "",
            None => self.address,
        };
        if !address.is_empty() {
            status["podIP"] = address.into();
            status["podIPs"] = json!([{"ip": address}]);
        }
        status
    }

    fn conditions(&self, phase: &str) -> Value {
        let is_ready = matches!(self.state, State::Running { is_ready: true });
        let started = !matches!(self.state, State::Waiting(..)) || phase == "Running";
        let ended = matches!(phase, "Succeeded" | "Failed");
        let containers = || {
            let list = self.pod["spec"]["containers"].as_array().into_iter().flatten();
            let names: Vec<&str> = list.map(|one| text(&one["name"])).collect();
            format!("containers with unready status: [{}]", names.join(" "))
        };
        let list = [
            ("PodReadyToStartContainers", started && !ended),
            ("Initialized", started || self.pod["spec"]["initContainers"].is_null()),
            ("Ready", is_ready),
            ("ContainersReady", is_ready),
            ("PodScheduled", true),
        ];
        let written = list.map(|(name, holds)| {
            let status = if holds { "True" } else { "False" };
            let known = condition(&self.pod["status"], name);
            let since = known.filter(|known| known["status"] == status);
            let mut one = json!({
                "type": name, "status": status, "lastProbeTime": null,
                "observedGeneration": generation(self.pod),
                "lastTransitionTime": since.map_or(self.now, |one| text(&one["lastTransitionTime"])),
            });
            if !holds && name.ends_with("Ready") {
                match phase {
                    "Succeeded" => one["reason"] = "PodCompleted".into(),
                    "Failed" => one["reason"] = "PodFailed".into(),
                    _ => {
                        one["reason"] = "ContainersNotReady".into();
                        one["message"] = containers().into();
                    }
                }
            } else if holds && phase == "Succeeded" && name == "Initialized" {
                one["reason"] = "PodCompleted".into();
            }
            one
        });
        Value::from(written.to_vec())
    }

    fn containers(&self, wanted: &str, known: &str) -> Value {
        let list = self.pod["spec"][wanted].as_array().into_iter().flatten();
        let statuses = list.enumerate().map(|(index, container)| {
            let old = &self.pod["status"][known][index];
            let mut status = json!({
                "name": container["name"], "image": container["image"], "imageID": "",
                "restartCount": number(&old["restartCount"]), "ready": false, "started": false,
                "lastState": old.get("lastState").cloned().unwrap_or_else(|| json!({})),
            });
            match self.state {
                State::Waiting(reason, message) => {
                    status["state"] = json!({"waiting": {"reason": reason}});
                    if !message.is_empty() {
                        status["state"]["waiting"]["message"] = message.into();
                    }
                    let ended = &old["state"]["terminated"];
                    if ended.is_object() {
                        status["lastState"] = json!({ "terminated": ended });
                        status["containerID"] = old["containerID"].clone();
                    }
                }
                State::Running { is_ready } => {
                    let since = match old["state"]["running"]["startedAt"].as_str() {
                        Some(since) => since,
                        None => self.now,
                    };
                    status["state"] = json!({"running": {"startedAt": since}});
                    status["ready"] = is_ready.into();
                    status["started"] = true.into();
                    if old["state"]["running"].is_null()
                        && old["lastState"]["terminated"].is_object()
                    {
                        status["restartCount"] = (number(&old["restartCount"]) + 1).into();
                    }
                    self.identify(&mut status, index);
                }
                State::Ended { code } => {
                    self.identify(&mut status, index);
                    let started = &old["state"]["running"]["startedAt"];
                    status["state"] = json!({"terminated": {
                        "exitCode": code, "reason": if code == 0 { "Completed" } else { "Error" },
                        "startedAt": started, "finishedAt": self.now,
                        "containerID": status["containerID"],
                    }});
                }
            }
            status
        });
        Value::from(statuses.collect::<Vec<_>>())
    }

    /// Init containers have completed when the others run.
    fn init_containers(&self) -> Value {
        let waits = matches!(self.state, State::Waiting(..));
        let list = self.pod["spec"]["initContainers"].as_array().into_iter().flatten();
        let statuses = list.map(|container| {
            let state = if waits {
                json!({"waiting": {"reason": "PodInitializing"}})
            } else {
                json!({"terminated": {"exitCode": 0, "reason": "Completed"}})
            };
            json!({
                "name": container["name"], "image": container["image"], "imageID": "",
                "restartCount": 0, "ready": !waits, "started": false, "lastState": {}, "state": state,
            })
        });
        Value::from(statuses.collect::<Vec<_>>())
    }

    /// Sets the ids of a container, derived from the Pod's uid, so that they are the same in each
    /// run.
    fn identify(&self, status: &mut Value, index: usize) {
        let uid = crate::types::object::meta(self.pod, "uid").replace('-', "");
        let restarts = number(&status["restartCount"]);
        status["containerID"] =
            format!("containerd://{uid}{uid:.24}{index:04x}{restarts:04x}").into();
        let image = text(&status["image"]);
        let digest = crate::controllers::template_hash::hash(&Value::from(image), 0);
        status["imageID"] = format!("{image}@sha256:{digest}").into();
    }
}
