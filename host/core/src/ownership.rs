//! Whose an object is (rules 1, 3 and 5).

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::consent::{is_made_by, is_merged_label};
use crate::object::{Entry, Operation};
use crate::old_names::KEPT_FOR_LABEL;
use crate::{Manager, Object, ObjectRef};

pub use crate::well_known::{ADOPT_ANNOTATION, RETAINED_FOR_LABEL};

/// Bytes of the hash in [`RETAINED_FOR_LABEL`].
const IDENTITY_BYTES: usize = 16;

/// The primary of a run, as far as ownership goes.
#[derive(Clone, Debug)]
pub struct Primary {
    /// Which object it is.
    pub object_ref: ObjectRef,
    /// Its uid.
    pub uid: Box<str>,
    /// The manager of what it makes.
    pub manager: Manager,
    /// The manager of what it merges into objects that it did not make.
    pub merger: Manager,
    /// The module decorates it: others make objects for it too.
    decorates: bool,
}

/// Whose an object of a desired name is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// This primary's.
    Own,
    /// Nobody's: it has no controller and no entry of ours.
    Unowned,
    /// Another controller's.
    Foreign(Controller),
}

/// Who holds an object that a primary wants.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Controller {
    /// The controller's kind and name (`Podroute first`), or empty where there is none.
    pub controller: String,
    /// The controller's uid, or empty.
    pub uid: String,
}

impl std::fmt::Display for Controller {
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
    pub fn new(module: &str, object_ref: ObjectRef, uid: &str) -> Self {
        Self {
            object_ref,
            uid: uid.into(),
            manager: Manager::primary(module, uid),
            merger: Manager::merge(module, uid),
            decorates: false,
        }
    }

    /// The same of a module that decorates its primaries, or controls them.
    #[must_use]
    pub fn decorating(self, decorates: bool) -> Self {
        Self { decorates, ..self }
    }

    /// Who the primary is over its deletion and return: a hash of group, kind, namespace and
    /// name, 32 hex digits.
    pub fn identity(&self) -> String {
        let ObjectRef { kind, key } = &self.object_ref;
        let mut hash = Sha256::new();
        for part in [kind.group(), &kind.kind, key.namespace(), key.name()] {
            hash.update(part);
            hash.update([0]);
        }
        hex::encode(&hash.finalize()[..IDENTITY_BYTES])
    }

    /// The name of the module that reconciles it.
    pub fn module(&self) -> &str {
        match &self.manager {
            Manager::Primary { module, .. } => module,
            _ => "",
        }
    }

    /// Whether a name is the primary's own, in whichever version of its kind.
    pub fn is_at(&self, object_ref: &ObjectRef) -> bool {
        let (mine, kind) = (&self.object_ref.kind, &object_ref.kind);
        mine.group() == kind.group()
            && mine.kind == kind.kind
            && self.object_ref.key == object_ref.key
    }

    /// Whether an object outlived its primary, and this is that primary again. What another module
    /// made for this same primary is that module's.
    ///
    /// The label alone says nothing, since every user who may write the object may write the label:
    /// this module must have made the object, for a primary of whatever uid, and no guest merged
    /// the label.
    pub fn is_retained(&self, object: &Object) -> bool {
        let anothers = |manager: &Manager| {
            matches!(manager, Manager::Primary { uid, .. } if **uid == *self.uid)
                && *manager != self.manager
        };
        let is_labelled =
            |label| is_labelled(object, label, &self.identity()) && !is_merged_label(object, label);
        [RETAINED_FOR_LABEL, KEPT_FOR_LABEL].into_iter().any(is_labelled)
            && object.entries.iter().any(|entry| is_made_by(entry, self.module()))
            && !object.entries.iter().any(|entry| anothers(&entry.manager))
    }

    /// Whether an object has the label of what outlives this primary, whoever wrote it.
    pub fn has_retained_label(&self, object: &Object) -> bool {
        let identity = self.identity();
        [RETAINED_FOR_LABEL, KEPT_FOR_LABEL]
            .iter()
            .any(|label| is_labelled(object, label, &identity))
    }

    /// Whether Kubernetes lets an object be owned by this primary: a namespaced owner owns
    /// only in its own namespace. The namespace in which the primary is stored decides: the scope
    /// that a manifest declares is a guest's word.
    pub fn may_own(&self, object_ref: &ObjectRef) -> bool {
        let home = self.object_ref.key.namespace();
        if home.is_empty() && !self.object_ref.kind.is_namespaced() {
            return true;
        }
        !home.is_empty() && object_ref.kind.is_namespaced() && object_ref.key.namespace() == home
    }

    /// The owner reference that makes this primary the controller of an object.
    pub fn owner_reference(&self) -> Value {
        json!({
            "apiVersion": self.object_ref.kind.api_version,
            "kind": self.object_ref.kind.kind,
            "name": self.object_ref.key.name(),
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
    ///
    /// A module that controls its primary has all that the primary owns. To one that decorates it,
    /// the owner says nothing: the controller of the primary and other modules make objects for it
    /// too.
    pub fn ownership(&self, object: &Object) -> Ownership {
        match object.controller() {
            Some(owner)
                if owner.uid == self.uid && (!self.decorates || self.has_applied(object)) =>
            {
                Ownership::Own
            }
            Some(owner) => Ownership::Foreign(Controller {
                controller: format!("{} {}", owner.kind, owner.name),
                uid: owner.uid.to_string(),
            }),
            None if self.has_applied(object) => Ownership::Own,
            None => Ownership::Unowned,
        }
    }

    /// Whether this primary made an object: it has an entry of its manager.
    pub fn has_applied(&self, object: &Object) -> bool {
        object.applied_by(&self.manager).is_some()
    }

    /// Whether an object lies where this primary cannot be its owner, and another primary made it.
    /// There no owner reference shows that it is somebody's, so the consent of this primary's user
    /// is not enough.
    pub fn is_elsewhere_and_anothers(&self, object_ref: &ObjectRef, object: &Object) -> bool {
        let is_anothers = |entry: &Entry| {
            entry.operation == Operation::Apply
                && entry.subresource.is_empty()
                && matches!(&entry.manager, Manager::Primary { uid, .. } if **uid != *self.uid)
        };
        !self.may_own(object_ref) && object.entries.iter().any(is_anothers)
    }

    /// Whether this primary has merged fields into an object.
    pub fn has_merged(&self, object: &Object) -> bool {
        object.applied_by(&self.merger).is_some()
    }

    /// The managers of this module whose primaries are gone and that still hold fields of an
    /// object that was kept: what they hold could never be taken away any more.
    pub fn predecessors(&self, object: &Object) -> Vec<Manager> {
        let mine = |manager: &&Manager| match (manager, &self.manager) {
            (Manager::Primary { module, uid }, Manager::Primary { module: my_module, uid: my }) => {
                module == my_module && uid != my
            }
            _ => false,
        };
        object.entries.iter().map(|entry| &entry.manager).filter(mine).cloned().collect()
    }
}

fn is_labelled(object: &Object, label: &str, identity: &str) -> bool {
    object.labels.get(label).is_some_and(|value| *value == *identity)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use innkeeper_contract::Kind;

    use super::*;
    use crate::ObjectKey;

    fn primary() -> Primary {
        let kind = Arc::new(Kind::namespaced("quay.io/v1alpha1", "Podroute", "podroutes"));
        Primary::new("podroute", ObjectRef::new(kind, ObjectKey::new("web", "first")), "u1")
    }

    fn object(metadata: &str) -> Object {
        let kind = Kind::namespaced("v1", "Service", "services");
        Object::decode(&kind, &format!(r#"{{"metadata":{metadata}}}"#), None).unwrap()
    }

    const ENTRY: &str = r#""managedFields":[{"manager":"innkeeper/podroute/u1","operation":"Apply","fieldsV1":{}}]"#;

    #[test]
    fn the_controller_decides() {
        let ours = r#"{"ownerReferences":[{"apiVersion":"quay.io/v1alpha1","kind":"Podroute","name":"first","uid":"u1","controller":true}]}"#;
        assert_eq!(primary().ownership(&object(ours)), Ownership::Own);
        let others = format!(
            r#"{{"ownerReferences":[{{"apiVersion":"quay.io/v1alpha1","kind":"Podroute","name":"second","uid":"u2","controller":true}}],{ENTRY}}}"#
        );
        let Ownership::Foreign(holder) = primary().ownership(&object(&others)) else {
            panic!("an object with another controller is not ours, whatever we wrote to it")
        };
        assert_eq!(holder.to_string(), "it is controlled by Podroute second");
    }

    #[test]
    fn decorator_has_of_what_its_primary_owns_only_what_it_made() {
        let owners = r#""ownerReferences":[{"apiVersion":"quay.io/v1alpha1","kind":"Podroute","name":"first","uid":"u1","controller":true}]"#;
        let decorator = primary().decorating(true);
        let made = object(&format!("{{{owners},{ENTRY}}}"));
        assert_eq!(decorator.ownership(&made), Ownership::Own);
        for metadata in [
            format!("{{{owners}}}"),
            format!("{{{owners},{}}}", ENTRY.replace("podroute/", "other/")),
            format!("{{{owners},{}}}", ENTRY.replace("u1\"", "u1/merge\"")),
        ] {
            let anothers = object(&metadata);
            assert!(matches!(decorator.ownership(&anothers), Ownership::Foreign(_)), "{metadata}");
            assert_eq!(primary().ownership(&anothers), Ownership::Own, "{metadata}");
        }
    }

    #[test]
    fn without_a_controller_our_entry_decides() {
        assert_eq!(primary().ownership(&object(&format!("{{{ENTRY}}}"))), Ownership::Own);
        assert_eq!(primary().ownership(&object("{}")), Ownership::Unowned);
        let another = ENTRY.replace("u1", "u2");
        assert_eq!(primary().ownership(&object(&format!("{{{another}}}"))), Ownership::Unowned);
    }

    #[test]
    fn a_plain_owner_is_not_a_controller() {
        let owned = r#"{"ownerReferences":[{"apiVersion":"quay.io/v1alpha1","kind":"Podroute","name":"first","uid":"u1"}]}"#;
        assert_eq!(primary().ownership(&object(owned)), Ownership::Unowned);
    }

    #[test]
    fn a_namespaced_primary_owns_in_its_namespace_only() {
        let service = |namespace| {
            ObjectRef::new(
                Arc::new(Kind::namespaced("v1", "Service", "services")),
                ObjectKey::new(namespace, "a"),
            )
        };
        assert!(primary().may_own(&service("web")));
        assert!(!primary().may_own(&service("other")));
        assert!(!primary().may_own(&service("")));
    }

    #[test]
    fn the_namespace_of_the_stored_primary_decides_what_it_owns_whatever_scope_is_declared() {
        let at = |kind: Kind, namespace: &str| {
            Primary::new("m", ObjectRef::new(Arc::new(kind), ObjectKey::new(namespace, "a")), "u")
        };
        let object_ref = |kind: Kind, namespace: &str| {
            ObjectRef::new(Arc::new(kind), ObjectKey::new(namespace, "b"))
        };
        let service = || Kind::namespaced("v1", "Service", "services");
        let namespace = || Kind::cluster("v1", "Namespace", "namespaces");

        let lies = at(Kind::cluster("x.dev/v1", "Foo", "foos"), "web");
        assert!(lies.may_own(&object_ref(service(), "web")));
        assert!(!lies.may_own(&object_ref(service(), "other")));
        assert!(!lies.may_own(&object_ref(namespace(), "")));

        let of_the_cluster = at(Kind::cluster("x.dev/v1", "Foo", "foos"), "");
        assert!(of_the_cluster.may_own(&object_ref(service(), "other")));
        assert!(of_the_cluster.may_own(&object_ref(namespace(), "")));

        let without_namespace = at(Kind::namespaced("x.dev/v1", "Foo", "foos"), "");
        assert!(!without_namespace.may_own(&object_ref(service(), "other")));
        assert!(!without_namespace.may_own(&object_ref(namespace(), "")));
    }
}
