use crate::PostgreSQL;
use crate::deployed::Deployed;

/// The annotation of a `PostgreSQL` that names claims whose content its volumes may leave behind.
pub const LEAVE_ANNOTATION: &str = "exp.wheel.jp/leave-claim";

/// The annotation of the Deployment that names the claims of [`LEAVE_ANNOTATION`] that the volumes
/// have left since: a consent permits one move.
pub(crate) const LEFT_ANNOTATION: &str = "exp.wheel.jp/left-claim";

/// The claims that the user allows to leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Consent {
    named: Vec<String>,
    spent: Vec<String>,
}

impl Consent {
    /// Reads the consent. Without the name in the annotation of the `PostgreSQL`, what the volumes
    /// have left is forgotten.
    pub(crate) fn of(postgres: &PostgreSQL, deployed: Option<&Deployed>) -> Self {
        let named = names(postgres.metadata.annotations.get(LEAVE_ANNOTATION).map(String::as_str));
        let mut spent = names(deployed.and_then(|deployed| deployed.annotation(LEFT_ANNOTATION)));
        spent.retain(|claim| named.contains(claim));
        Self { named, spent }
    }

    /// Returns whether the volume may leave this claim.
    pub(crate) fn permits(&self, claim: &str) -> bool {
        self.has(claim) && !self.is_spent(claim)
    }

    /// Returns whether a volume has left this claim by this consent before.
    pub(crate) fn is_spent(&self, claim: &str) -> bool {
        self.spent.iter().any(|one| one == claim)
    }

    /// Returns the consent after the volumes have left these claims.
    pub(crate) fn spend(mut self, left: impl Iterator<Item = String>) -> Self {
        let left: Vec<String> = left.filter(|claim| self.permits(claim)).collect();
        self.spent.extend(left);
        self
    }

    /// Returns the value of [`LEFT_ANNOTATION`]; `None` if no volume has left a named claim.
    pub(crate) fn left(&self) -> Option<String> {
        (!self.spent.is_empty()).then(|| self.spent.join(","))
    }

    fn has(&self, claim: &str) -> bool {
        self.named.iter().any(|one| one == claim)
    }
}

fn names(list: Option<&str>) -> Vec<String> {
    let names = list.unwrap_or_default().split(',').map(str::trim);
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}
