//! Whose an object is (rules 1, 3 and 5).

use serde_json::{Value, json};

use crate::{Manager, Object, Target};

/// The annotation by which a primary takes over objects that nobody owns.
pub const ADOPT_ANNOTATION: &str = "innkeeper.dev/adopt";

/// The primary of a run, as far as ownership goes.
#[derive(Clone, Debug)]
pub struct Primary {
    /// Which object it is.
    pub target: Target,
    /// Its uid.
    pub uid: Box<str>,
    /// The manager of what it makes.
    pub manager: Manager,
}

/// Whose an object of a desired name is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// This primary's.
    Ours,
    /// Nobody's: it has no controller and no entry of ours.
    Nobodys,
    /// Another controller's.
    Others(Holder),
}

/// Who holds an object that a primary wants.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holder {
    /// The controller's kind and name (`Podroute first`), or empty where there is none.
    pub controller: String,
    /// The controller's uid, or empty.
    pub uid: String,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.controller.is_empty() {
            f.write_str("it exists and has no controller")
        } else {
            write!(f, "it is controlled by {}", self.controller)
        }
    }
}

impl Primary {
    /// A primary of a module.
    pub fn new(module: &str, target: Target, uid: &str) -> Self {
        Self { target, uid: uid.into(), manager: Manager::primary(module, uid) }
    }

    /// Whether Kubernetes lets an object be owned by this primary: a namespaced owner owns
    /// only in its own namespace.
    pub fn may_own(&self, target: &Target) -> bool {
        !self.target.kind.is_namespaced() || self.target.key.namespace() == target.key.namespace()
    }

    /// The owner reference that makes this primary the controller of an object.
    pub fn owner_reference(&self) -> Value {
        json!({
            "apiVersion": self.target.kind.api_version,
            "kind": self.target.kind.kind,
            "name": self.target.key.name(),
            "uid": self.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        })
    }

    /// Whose an object is.
    ///
    /// An object without a controller is this primary's if it has an entry of this primary's
    /// manager: either it may have no owner (another namespace), or somebody took the owner
    /// reference off, which is drift to be repaired. No one else writes under that
    /// manager, since its name holds the primary's uid.
    pub fn standing(&self, object: &Object) -> Standing {
        match object.controller() {
            Some(owner) if owner.uid == self.uid => Standing::Ours,
            Some(owner) => Standing::Others(Holder {
                controller: format!("{} {}", owner.kind, owner.name),
                uid: owner.uid.to_string(),
            }),
            None if self.made(object) => Standing::Ours,
            None => Standing::Nobodys,
        }
    }

    /// Whether this primary made an object: it has an entry of its manager.
    pub fn made(&self, object: &Object) -> bool {
        object.applied_by(&self.manager).is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use innkeeper_contract::Kind;

    use super::*;
    use crate::Key;

    fn primary() -> Primary {
        let kind = Arc::new(Kind::namespaced("quay.io/v1alpha1", "Podroute", "podroutes"));
        Primary::new("podroute", Target::new(kind, Key::new("web", "first")), "u1")
    }

    fn object(metadata: &str) -> Object {
        let kind = Kind::namespaced("v1", "Service", "services");
        Object::decode(&kind, &format!(r#"{{"metadata":{metadata}}}"#), None).unwrap()
    }

    const ENTRY: &str = r#""managedFields":[{"manager":"innkeeper/podroute/u1","operation":"Apply","fieldsV1":{}}]"#;

    #[test]
    fn the_controller_decides() {
        let ours = r#"{"ownerReferences":[{"apiVersion":"quay.io/v1alpha1","kind":"Podroute","name":"first","uid":"u1","controller":true}]}"#;
        assert_eq!(primary().standing(&object(ours)), Standing::Ours);
        let others = format!(
            r#"{{"ownerReferences":[{{"apiVersion":"quay.io/v1alpha1","kind":"Podroute","name":"second","uid":"u2","controller":true}}],{ENTRY}}}"#
        );
        let Standing::Others(holder) = primary().standing(&object(&others)) else {
            panic!("an object with another controller is not ours, whatever we wrote to it")
        };
        assert_eq!(holder.to_string(), "it is controlled by Podroute second");
    }

    #[test]
    fn without_a_controller_our_entry_decides() {
        assert_eq!(primary().standing(&object(&format!("{{{ENTRY}}}"))), Standing::Ours);
        assert_eq!(primary().standing(&object("{}")), Standing::Nobodys);
        let another = ENTRY.replace("u1", "u2");
        assert_eq!(primary().standing(&object(&format!("{{{another}}}"))), Standing::Nobodys);
    }

    #[test]
    fn a_plain_owner_is_not_a_controller() {
        let owned = r#"{"ownerReferences":[{"apiVersion":"quay.io/v1alpha1","kind":"Podroute","name":"first","uid":"u1"}]}"#;
        assert_eq!(primary().standing(&object(owned)), Standing::Nobodys);
    }

    #[test]
    fn a_namespaced_primary_owns_in_its_namespace_only() {
        let service = |namespace| {
            Target::new(
                Arc::new(Kind::namespaced("v1", "Service", "services")),
                Key::new(namespace, "a"),
            )
        };
        assert!(primary().may_own(&service("web")));
        assert!(!primary().may_own(&service("other")));
        assert!(!primary().may_own(&service("")));
    }
}
