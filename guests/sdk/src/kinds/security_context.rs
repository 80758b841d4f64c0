use serde::Serialize;

/// The rights of a container's processes.
///
/// ```
/// use innkeeper_sdk::kinds::{Container, SecurityContext};
///
/// let context = SecurityContext::restricted().run_as_user(1000).read_only_root_filesystem(true);
/// let web = Container::new("web", "nginx:1").security_context(context);
/// assert_eq!(web.verbatim["securityContext"]["runAsNonRoot"], true);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SecurityContext {
    /// User id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_as_user: Option<i64>,
    /// Group id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_as_group: Option<i64>,
    /// Whether the kubelet refuses to start the container as root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_as_non_root: Option<bool>,
    /// Whether the container cannot write to its image's files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_root_filesystem: Option<bool>,
    /// Whether a process can gain more rights than its parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_privilege_escalation: Option<bool>,
    /// Whether the processes have all rights of the node's root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub privileged: Option<bool>,
    /// Capabilities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// Filter of system calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seccomp_profile: Option<SeccompProfile>,
}

/// Changes to the container runtime's default capabilities.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// Capabilities to add (`NET_BIND_SERVICE`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<String>,
    /// Capabilities to drop; `ALL` for all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drop: Vec<String>,
}

/// A filter of system calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SeccompProfile {
    /// `RuntimeDefault`, `Unconfined` or `Localhost`.
    #[serde(rename = "type")]
    pub type_: String,
}

into_json!(SecurityContext);
into_json!(PodSecurityContext);

impl SecurityContext {
    /// Creates what the Pod Security Standard `restricted` requires of a container.
    pub fn restricted() -> Self {
        Self {
            run_as_non_root: Some(true),
            allow_privilege_escalation: Some(false),
            seccomp_profile: Some(SeccompProfile { type_: "RuntimeDefault".to_owned() }),
            ..Self::default()
        }
        .drop_capability("ALL")
    }

    /// Adds a capability.
    pub fn add_capability(mut self, name: impl Into<String>) -> Self {
        self.capabilities.get_or_insert_default().add.push(name.into());
        self
    }

    /// Drops a capability; `ALL` for all.
    pub fn drop_capability(mut self, name: impl Into<String>) -> Self {
        self.capabilities.get_or_insert_default().drop.push(name.into());
        self
    }

    setters! {
        /// Sets the user id.
        run_as_user(run_as_user: i64);
        /// Sets the group id.
        run_as_group(run_as_group: i64);
        /// Sets whether the kubelet refuses to start the container as root.
        run_as_non_root(run_as_non_root: bool);
        /// Sets whether the container cannot write to its image's files.
        read_only_root_filesystem(read_only_root_filesystem: bool);
        /// Sets whether the processes have all rights of the node's root.
        privileged(privileged: bool);
    }
}

/// The rights of all containers of a pod.
///
/// ```
/// use innkeeper_sdk::kinds::{PodSecurityContext, PodTemplate};
///
/// let template = PodTemplate::new(&innkeeper_sdk::labels([("app", "web")]))
///     .security_context(PodSecurityContext::default().run_as_user(1000).fs_group(1000));
/// assert_eq!(template.spec.verbatim["securityContext"]["fsGroup"], 1000);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSecurityContext {
    /// User id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_as_user: Option<i64>,
    /// Group id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_as_group: Option<i64>,
    /// Whether the kubelet refuses to start a container as root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_as_non_root: Option<bool>,
    /// Group that owns the files of the volumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs_group: Option<i64>,
    /// Filter of system calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seccomp_profile: Option<SeccompProfile>,
}

impl PodSecurityContext {
    setters! {
        /// Sets the user id.
        run_as_user(run_as_user: i64);
        /// Sets the group id.
        run_as_group(run_as_group: i64);
        /// Sets whether the kubelet refuses to start a container as root.
        run_as_non_root(run_as_non_root: bool);
        /// Sets the group that owns the files of the volumes.
        fs_group(fs_group: i64);
    }
}
