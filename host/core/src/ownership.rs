//! Ownership: which controller an object belongs to.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::consent::{is_made_by, is_merged_label};
use crate::object::Entry;
use crate::old_names::KEPT_FOR_LABEL;
use crate::{Manager, Object, ObjectRef};

pub use crate::well_known::{ADOPT_ANNOTATION, RETAINED_FOR_LABEL};

/// Bytes of the hash in [`RETAINED_FOR_LABEL`].
const IDENTITY_BYTES: usize = 16;

/// A primary and the module that reconciles it: all that decides the ownership of objects.
#[derive(Clone, Debug)]
pub struct PrimaryOwner {
    /// Kind, namespace and name of the primary.
    pub object_ref: ObjectRef,
    /// The uid of the primary.
    pub uid: Box<str>,
    /// The manager of the objects that the module makes for the primary.
    pub manager: Manager,
    /// The manager of the fields that the module merges into objects of others.
    pub merge_manager: Manager,
    /// Whether the module decorates the primary, so that others make objects for it too.
    decorates: bool,
}

/// Whom an object belongs to, from the point of view of a primary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// The primary.
    Own,
    /// Nobody: it has no controller, and no entry of the primary's manager.
    Unowned,
    /// Another controller.
    Foreign(Controller),
}

/// The controller of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Controller {
    /// Kind and name of the controller (`Podroute first`).
    pub controller: String,
    /// The uid of the controller.
    pub uid: String,
}

impl PrimaryOwner {
    /// Makes the primary of a module that controls it.
    pub fn new(module: &str, object_ref: ObjectRef, uid: &str) -> Self {
        Self {
            object_ref,
            uid: uid.into(),
            manager: Manager::primary(module, uid),
            merge_manager: Manager::merge(module, uid),
            decorates: false,
        }
    }

    /// Returns the primary with another relation of its module: the module decorates or controls
    /// it.
    #[must_use]
    pub fn decorating(self, decorates: bool) -> Self {
        Self { decorates, ..self }
    }

    /// Returns the identity that a primary keeps when it is deleted and created again: a hash of
    /// group, kind, namespace and name, 32 hex digits.
    pub fn identity(&self) -> String {
        let ObjectRef { kind, key } = &self.object_ref;
        let mut hash = Sha256::new();
        for part in [kind.group(), &kind.kind, key.namespace(), key.name()] {
            hash.update(part);
            hash.update([0]);
        }
        hex::encode(&hash.finalize()[..IDENTITY_BYTES])
    }

    /// The name of the module that reconciles the primary.
    pub fn module(&self) -> &str {
        match &self.manager {
            Manager::Primary { module, .. } => module,
            _ => "",
        }
    }

    /// Whether a reference names the primary itself, in any version of its kind.
    pub fn is_at(&self, object_ref: &ObjectRef) -> bool {
        let (own_kind, kind) = (&self.object_ref.kind, &object_ref.kind);
        own_kind.group() == kind.group()
            && own_kind.kind == kind.kind
            && self.object_ref.key == object_ref.key
    }

    /// Whether an object outlived a primary with the identity of this one, so that this primary may
    /// adopt it.
    ///
    /// The label alone is no proof, since every user who may write the object may write the label.
    /// This module must have made the object (for a primary of any uid), no guest may have merged
    /// the label, and no other module may have made the object for this primary.
    pub fn is_retained(&self, object: &Object) -> bool {
        let is_of_another_module = |manager: &Manager| {
            matches!(manager, Manager::Primary { uid, .. } if **uid == *self.uid)
                && *manager != self.manager
        };
        let is_labelled =
            |label| is_labelled(object, label, &self.identity()) && !is_merged_label(object, label);
        [RETAINED_FOR_LABEL, KEPT_FOR_LABEL].into_iter().any(is_labelled)
            && object.entries.iter().any(|entry| is_made_by(entry, self.module()))
            && !object.entries.iter().any(|entry| is_of_another_module(&entry.manager))
    }

    /// Whether an object has the label of objects that outlive this primary, by any writer.
    pub fn has_retained_label(&self, object: &Object) -> bool {
        let identity = self.identity();
        [RETAINED_FOR_LABEL, KEPT_FOR_LABEL]
            .iter()
            .any(|label| is_labelled(object, label, &identity))
    }

    /// Whether Kubernetes allows this primary to own an object: a namespaced owner owns objects in
    /// its own namespace only. The namespace of the stored primary decides, and not the scope in
    /// the manifest, which a guest may declare falsely.
    pub fn may_own(&self, object_ref: &ObjectRef) -> bool {
        let home = self.object_ref.key.namespace();
        if home.is_empty() && !self.object_ref.kind.is_namespaced() {
            return true;
        }
        !home.is_empty() && object_ref.kind.is_namespaced() && object_ref.key.namespace() == home
    }

    /// Returns the owner reference that makes this primary the controller of an object.
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

    /// Decides whom an object belongs to.
    ///
    /// An object without a controller belongs to this primary if it has an entry of the primary's
    /// manager: either it may have no owner (in another namespace), or someone removed the owner
    /// reference, which is drift. Nobody else writes under that manager, since its name has the uid
    /// of the primary.
    ///
    /// To a module that controls the primary belong all objects that the primary owns. A module
    /// that decorates the primary must have made them, since others make objects for the primary
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

    /// Whether the module made an object for this primary: it has an entry of the primary's
    /// manager.
    pub fn has_applied(&self, object: &Object) -> bool {
        object.is_applied_by(&self.manager)
    }

    /// Whether an object is outside the namespace in which this primary may own objects, and was
    /// made for another primary. No owner reference protects it there, so the consent of a user of
    /// this primary is not enough to adopt it.
    pub fn is_made_for_another_outside_namespace(
        &self,
        object_ref: &ObjectRef,
        object: &Object,
    ) -> bool {
        let is_made_for_another = |entry: &Entry| {
            entry.is_apply()
                && matches!(&entry.manager, Manager::Primary { uid, .. } if **uid != *self.uid)
        };
        !self.may_own(object_ref) && object.entries.iter().any(is_made_for_another)
    }

    /// Whether the module has merged fields into an object for this primary.
    pub fn has_merged(&self, object: &Object) -> bool {
        object.is_applied_by(&self.merge_manager)
    }

    /// Lists the managers of this module for other primaries that still hold fields of an object,
    /// as an earlier primary does of a retained object. Nobody could remove these fields later.
    pub fn predecessors(&self, object: &Object) -> Vec<Manager> {
        let is_of_module = |manager: &&Manager| match (manager, &self.manager) {
            (Manager::Primary { module, uid }, Manager::Primary { module: own, uid: own_uid }) => {
                module == own && uid != own_uid
            }
            _ => false,
        };
        object.entries.iter().map(|entry| &entry.manager).filter(is_of_module).cloned().collect()
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

    fn primary() -> PrimaryOwner {
        let kind = Arc::new(Kind::namespaced("quay.io/v1alpha1", "Podroute", "podroutes"));
        PrimaryOwner::new("podroute", ObjectRef::new(kind, ObjectKey::new("web", "first")), "u1")
    }

    fn object(metadata: &str) -> Object {
        let kind = Kind::namespaced("v1", "Service", "services");
        Object::decode(&kind, &format!(r#"{{"metadata":{metadata}}}"#), None).unwrap()
    }

    const ENTRY: &str = r#""managedFields":[{"manager":"innkeeper/podroute/u1","operation":"Apply","fieldsV1":{}}]"#;

    #[test]
    fn object_belongs_to_its_controller() {
        let own = r#"{"ownerReferences":[{"apiVersion":"quay.io/v1alpha1","kind":"Podroute","name":"first","uid":"u1","controller":true}]}"#;
        assert_eq!(primary().ownership(&object(own)), Ownership::Own);
        let foreign = format!(
            r#"{{"ownerReferences":[{{"apiVersion":"quay.io/v1alpha1","kind":"Podroute","name":"second","uid":"u2","controller":true}}],{ENTRY}}}"#
        );
        let Ownership::Foreign(controller) = primary().ownership(&object(&foreign)) else {
            panic!("an object with another controller is foreign, whatever the module wrote to it")
        };
        assert_eq!(controller.controller, "Podroute second");
    }

    #[test]
    fn decorator_owns_only_objects_that_it_made() {
        let owners = r#""ownerReferences":[{"apiVersion":"quay.io/v1alpha1","kind":"Podroute","name":"first","uid":"u1","controller":true}]"#;
        let decorator = primary().decorating(true);
        let made = object(&format!("{{{owners},{ENTRY}}}"));
        assert_eq!(decorator.ownership(&made), Ownership::Own);
        for metadata in [
            format!("{{{owners}}}"),
            format!("{{{owners},{}}}", ENTRY.replace("podroute/", "other/")),
            format!("{{{owners},{}}}", ENTRY.replace("u1\"", "u1/merge\"")),
        ] {
            let other = object(&metadata);
            assert!(matches!(decorator.ownership(&other), Ownership::Foreign(_)), "{metadata}");
            assert_eq!(primary().ownership(&other), Ownership::Own, "{metadata}");
        }
    }

    #[test]
    fn object_without_a_controller_belongs_to_the_primary_with_an_entry() {
        assert_eq!(primary().ownership(&object(&format!("{{{ENTRY}}}"))), Ownership::Own);
        assert_eq!(primary().ownership(&object("{}")), Ownership::Unowned);
        let another = ENTRY.replace("u1", "u2");
        assert_eq!(primary().ownership(&object(&format!("{{{another}}}"))), Ownership::Unowned);
    }

    #[test]
    fn plain_owner_is_no_controller() {
        let owned = r#"{"ownerReferences":[{"apiVersion":"quay.io/v1alpha1","kind":"Podroute","name":"first","uid":"u1"}]}"#;
        assert_eq!(primary().ownership(&object(owned)), Ownership::Unowned);
    }

    #[test]
    fn namespaced_primary_owns_in_its_namespace_only() {
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
            PrimaryOwner::new(
                "m",
                ObjectRef::new(Arc::new(kind), ObjectKey::new(namespace, "a")),
                "u",
            )
        };
        let object_ref = |kind: Kind, namespace: &str| {
            ObjectRef::new(Arc::new(kind), ObjectKey::new(namespace, "b"))
        };
        let service = || Kind::namespaced("v1", "Service", "services");
        let namespace = || Kind::cluster("v1", "Namespace", "namespaces");

        let misdeclared = at(Kind::cluster("x.dev/v1", "Foo", "foos"), "web");
        assert!(misdeclared.may_own(&object_ref(service(), "web")));
        assert!(!misdeclared.may_own(&object_ref(service(), "other")));
        assert!(!misdeclared.may_own(&object_ref(namespace(), "")));

        let of_the_cluster = at(Kind::cluster("x.dev/v1", "Foo", "foos"), "");
        assert!(of_the_cluster.may_own(&object_ref(service(), "other")));
        assert!(of_the_cluster.may_own(&object_ref(namespace(), "")));

        let without_namespace = at(Kind::namespaced("x.dev/v1", "Foo", "foos"), "");
        assert!(!without_namespace.may_own(&object_ref(service(), "other")));
        assert!(!without_namespace.may_own(&object_ref(namespace(), "")));
    }
}
