use innkeeper_sdk::serde_json::{Map, Value, json};

use crate::member::{fill, written};
use crate::parameters::SecurityContext;

/// The capability that always allows privilege escalation.
const SYS_ADMIN: &str = "SYS_ADMIN";

/// All capabilities.
const ALL: &str = "ALL";

impl SecurityContext {
    /// Adds the default security context to a container of a Pod with this spec. Returns whether
    /// it changed.
    ///
    /// A privileged container is left alone, since it ignores or contradicts the defaults. A field
    /// that the security context of the Pod sets for all its containers is left alone too.
    pub(crate) fn add(&self, spec: &PodContext, container: &mut Map<String, Value>) -> bool {
        let context = written(container, &["securityContext"]).and_then(Value::as_object);
        let empty = Map::new();
        let context = context.unwrap_or(&empty);
        let is_privileged = written(context, &["privileged"]) == Some(&Value::Bool(true));
        if is_privileged || is_host_process(context) || is_host_process(&spec.shared) {
            return false;
        }
        let of_both = |member: &str| written(context, &[member]).or(spec.shared(member));
        let is_root = of_both("runAsUser") == Some(&json!(0));
        let is_decided = of_both("runAsNonRoot").is_some();
        let mut is_changed = false;
        if self.run_as_non_root == Some(true) && !is_root && !is_decided {
            is_changed |= fill(container, &["securityContext", "runAsNonRoot"], true.into());
        }
        // Kubernetes refuses the others for Windows.
        is_changed | (!spec.is_windows && self.add_for_linux(spec, container))
    }

    fn add_for_linux(&self, spec: &PodContext, container: &mut Map<String, Value>) -> bool {
        let added = added_capabilities(container);
        let adds = |name: &str| added.iter().any(|one| one == name);
        let mut is_changed = false;
        let escalates = adds(SYS_ADMIN) || adds(ALL);
        if self.allow_privilege_escalation == Some(false) && !escalates {
            let field = ["securityContext", "allowPrivilegeEscalation"];
            is_changed |= fill(container, &field, false.into());
        }
        // A runtime adds single capabilities after it drops all, and drops single ones at last.
        let dropped = self.capabilities.drop.iter().filter(|one| !adds(without_prefix(one)));
        let dropped: Vec<&String> = dropped.collect();
        if !dropped.is_empty() && !adds(ALL) {
            let field = ["securityContext", "capabilities", "drop"];
            is_changed |= fill(container, &field, json!(dropped));
        }
        if let (Some(profile), false) =
            (&self.seccomp_profile, spec.shared("seccompProfile").is_some())
        {
            let field = ["securityContext", "seccompProfile"];
            is_changed |= fill(container, &field, json!({"type": profile.type_}));
        }
        is_changed
    }
}

/// What the spec of a Pod says for all its containers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PodContext {
    /// The security context of all containers.
    shared: Map<String, Value>,
    is_windows: bool,
}

impl PodContext {
    /// Reads the spec of a Pod.
    pub(crate) fn of(spec: &Map<String, Value>) -> Self {
        let shared = written(spec, &["securityContext"]).and_then(Value::as_object);
        Self {
            shared: shared.cloned().unwrap_or_default(),
            is_windows: written(spec, &["os", "name"]) == Some(&json!("windows")),
        }
    }

    /// Returns a field of the security context of all containers; `None` if it is not written.
    fn shared(&self, member: &str) -> Option<&Value> {
        written(&self.shared, &[member])
    }
}

/// Whether a security context makes containers processes of a Windows node.
fn is_host_process(context: &Map<String, Value>) -> bool {
    written(context, &["windowsOptions", "hostProcess"]) == Some(&Value::Bool(true))
}

/// Returns the capabilities that a container adds, without the prefix that some write.
fn added_capabilities(container: &Map<String, Value>) -> Vec<String> {
    let added = written(container, &["securityContext", "capabilities", "add"]);
    let added = added.and_then(Value::as_array).into_iter().flatten();
    added.filter_map(Value::as_str).map(|one| without_prefix(one).to_owned()).collect()
}

fn without_prefix(capability: &str) -> &str {
    capability.strip_prefix("CAP_").unwrap_or(capability)
}
