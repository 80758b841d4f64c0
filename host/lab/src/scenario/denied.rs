//! Requests that the API server must refuse, as the files of a step list them.

use std::path::Path;

use serde_json::Value;

use super::document::{DeniedEntry, Reference};
use super::files::{CaseError, Document, DocumentLocation, documents_at, wrong};
use super::matching::name_of_object;
use crate::api::ApiFailure;

/// The annotation of an object in a file `NN-denied.yaml`: a part of the message of its refusal. It
/// is not sent.
const ANNOTATION: &str = "innkeeper.dev/denied";

/// A request that the API server must refuse.
#[derive(Clone, Debug)]
pub(super) struct Denied {
    pub(super) request: DeniedRequest,
    /// A part of the message of the refusal.
    pub(super) message: String,
    code: Option<u16>,
    place: DocumentLocation,
}

/// What must be refused.
#[derive(Clone, Debug)]
pub(super) enum DeniedRequest {
    /// To create this object, or to merge it into the existing one.
    Apply(Value),
    /// To delete this object.
    Delete(Reference),
}

/// What happened to a request instead of the expected refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mismatch {
    pub(super) message: String,
    pub(super) details: String,
}

impl Denied {
    /// Of an object that has the annotation.
    ///
    /// # Errors
    /// If the annotation is missing or empty, or has no text.
    pub(super) fn of_object(document: Document) -> Result<Self, CaseError> {
        let Document { mut value, place } = document;
        let annotations = value.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
        let message = annotations.and_then(|annotations| annotations.remove(ANNOTATION));
        let Some(Value::String(message)) = message else {
            let why = format!(
                "the object has no annotation {ANNOTATION} with a text; add a part of the message with which the API server refuses it"
            );
            return Err(wrong(place, why));
        };
        if value.pointer("/metadata/annotations").is_some_and(|left| left == &serde_json::json!({}))
            && let Some(metadata) = value["metadata"].as_object_mut()
        {
            metadata.remove("annotations");
        }
        Self::new(DeniedRequest::Apply(value), message, None, place)
    }

    fn new(
        request: DeniedRequest,
        message: String,
        code: Option<u16>,
        place: DocumentLocation,
    ) -> Result<Self, CaseError> {
        if message.trim().is_empty() {
            let why = "the message of a denial is empty, so that any refusal would do; give a part of the expected one";
            return Err(wrong(place, why));
        }
        if code.is_some_and(|code| !(400..=599).contains(&code)) {
            return Err(wrong(place, "the code of a denial is no HTTP status of 400 to 599"));
        }
        Ok(Self { request, message, code, place })
    }

    /// The object as failures name it.
    fn name(&self) -> String {
        match &self.request {
            DeniedRequest::Apply(object) => name_of_object(object),
            DeniedRequest::Delete(Reference { kind, name, .. }) => {
                format!("the deletion of {kind} {name}")
            }
        }
    }

    fn mismatch(&self, what: &str, message: &str, found: &str) -> Mismatch {
        let expected = match self.code {
            None => format!("expected: {message}\n"),
            Some(code) => format!("expected: {message} ({code})\n"),
        };
        Mismatch {
            message: format!("{}: {} {what}", self.place, self.name()),
            details: expected + &format!("found:    {found}\n"),
        }
    }

    /// Compares the result of the request with the expected refusal; `message` is its part with the
    /// namespace of the case.
    ///
    /// # Errors
    /// If the server does not refuse the request, or otherwise than expected.
    pub(super) fn check(
        &self,
        result: &Result<(), ApiFailure>,
        message: &str,
    ) -> Result<(), Mismatch> {
        match result {
            Ok(()) => Err(self.mismatch("is admitted and must be denied", message, "admitted")),
            Err(ApiFailure::Refused { code, message: found })
                if found.contains(message) && self.code.is_none_or(|one| one == *code) =>
            {
                Ok(())
            }
            Err(ApiFailure::Refused { code, message: found }) => {
                let found = format!("{found} ({code})");
                Err(self.mismatch("is refused otherwise than expected", message, &found))
            }
            Err(error) => Err(self.failed(error, message)),
        }
    }

    /// The server has not decided about the request.
    pub(super) fn failed(&self, error: &ApiFailure, message: &str) -> Mismatch {
        self.mismatch("is not denied: the request fails", message, &error.to_string())
    }

    /// The object to delete does not exist.
    pub(super) fn missing(&self, message: &str) -> Mismatch {
        let what = "cannot be denied: the object does not exist; apply it before";
        self.mismatch(what, message, "not found")
    }
}

/// The requests of an entry of `denied` in a `TestStep`, which lies at `place`.
///
/// # Errors
/// If the file cannot be read or has no objects, or the entry is incomplete.
pub(super) fn of_entry(
    folder: &Path,
    entry: DeniedEntry,
    place: &DocumentLocation,
) -> Result<Vec<Denied>, CaseError> {
    let DeniedEntry { file, delete, message, code } = entry;
    match (file, delete) {
        (Some(file), None) => {
            let objects = documents_at(&folder.join(&file))?;
            if objects.is_empty() {
                return Err(wrong(place, format!("the file {file} of denied has no objects")));
            }
            let denied = objects.into_iter().map(|document| {
                let Document { value, place } = not_annotated(document)?;
                if !value["apiVersion"].is_string() || !value["kind"].is_string() {
                    return Err(wrong(place, "not an object: apiVersion or kind is missing"));
                }
                Denied::new(DeniedRequest::Apply(value), message.clone(), code, place)
            });
            denied.collect()
        }
        (None, Some(reference)) => {
            let Reference { api_version, kind, name, .. } = &reference;
            if [api_version, kind, name].iter().any(|one| one.is_empty()) {
                let why = "a delete of denied has no apiVersion, kind or name; add them";
                return Err(wrong(place, why));
            }
            let request = DeniedRequest::Delete(reference);
            Ok(vec![Denied::new(request, message, code, place.clone())?])
        }
        _ => Err(wrong(place, "an item of denied needs either file or delete")),
    }
}

/// An object that is not of a file `NN-denied.yaml`.
///
/// # Errors
/// If it has the annotation, which would be stored and compared with nothing.
pub(super) fn not_annotated(document: Document) -> Result<Document, CaseError> {
    if document.value["metadata"]["annotations"].get(ANNOTATION).is_none() {
        return Ok(document);
    }
    let why = format!(
        "the annotation {ANNOTATION} counts in files NN-denied*.yaml only; rename the file or remove the annotation"
    );
    Err(wrong(&document.place, why))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::json;

    use super::*;

    fn place() -> DocumentLocation {
        DocumentLocation { file: PathBuf::from("00-denied.yaml"), index: 0, in_list: false }
    }

    fn object(annotations: &Value) -> Document {
        let metadata = json!({"name": "a", "annotations": annotations});
        let value = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        Document { value, place: place() }
    }

    fn refused(code: u16, message: &str) -> Result<(), ApiFailure> {
        Err(ApiFailure::Refused { code, message: message.to_owned() })
    }

    #[test]
    fn annotation_of_an_object_is_its_message_and_is_not_sent() {
        let sent = |annotations: &Value| {
            let denied = Denied::of_object(object(annotations)).unwrap();
            assert_eq!(denied.message, "is missing");
            let DeniedRequest::Apply(object) = denied.request else { panic!("a deletion") };
            object["metadata"].clone()
        };
        let expected = json!({"name": "a"});
        assert_eq!(sent(&json!({"innkeeper.dev/denied": "is missing"})), expected);
        let more = sent(&json!({"innkeeper.dev/denied": "is missing", "x": "y"}));
        assert_eq!(more, json!({"name": "a", "annotations": {"x": "y"}}));
    }

    #[test]
    fn denial_that_any_refusal_would_meet_is_refused() {
        for annotations in [json!(null), json!({}), json!({"innkeeper.dev/denied": 403})] {
            let error = Denied::of_object(object(&annotations)).unwrap_err().to_string();
            assert!(error.starts_with("00-denied.yaml, document 1: the object has no"), "{error}");
        }
        let empty = Denied::of_object(object(&json!({"innkeeper.dev/denied": " "})));
        assert!(empty.unwrap_err().to_string().contains("any refusal would do"));
        let elsewhere = not_annotated(object(&json!({"innkeeper.dev/denied": "x"})));
        assert!(elsewhere.unwrap_err().to_string().contains("rename the file"));
        not_annotated(object(&json!({}))).unwrap();
    }

    #[test]
    fn only_the_expected_refusal_is_a_denial() {
        let denied = Denied::new(
            DeniedRequest::Apply(object(&json!(null)).value),
            "team is missing".to_owned(),
            Some(422),
            place(),
        );
        let denied = denied.unwrap();
        let check = |result| denied.check(&result, &denied.message);
        assert_eq!(check(refused(422, "the label team is missing; add it")), Ok(()));
        let admitted = check(Ok(())).unwrap_err();
        assert_eq!(
            admitted.message,
            "00-denied.yaml, document 1: ConfigMap a is admitted and must be denied"
        );
        assert_eq!(admitted.details, "expected: team is missing (422)\nfound:    admitted\n");
        for other in [refused(403, "the label team is missing"), refused(422, "another")] {
            let other = check(other).unwrap_err();
            assert!(other.message.ends_with("is refused otherwise than expected"), "{other:?}");
        }
        let silent = check(Err(ApiFailure::Silent("no route".to_owned()))).unwrap_err();
        assert!(silent.message.ends_with("the request fails"), "{silent:?}");
        assert!(silent.details.contains("no route"), "{silent:?}");
    }

    #[test]
    fn entry_needs_one_request_and_an_exact_one() {
        let entry = |document: Value| {
            let folder = tempfile::tempdir().unwrap();
            let bad = folder.path().join("bad");
            std::fs::create_dir(&bad).unwrap();
            let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
            std::fs::write(bad.join("two.yaml"), format!("{text}---\n{text}")).unwrap();
            std::fs::write(bad.join("none.yaml"), "# nothing\n").unwrap();
            let entry = serde_json::from_value(document).map_err(|error| error.to_string())?;
            let read = of_entry(folder.path(), entry, &place());
            read.map(|all| all.len()).map_err(|error| error.to_string())
        };
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "name": "a"});
        assert_eq!(entry(json!({"file": "bad/two.yaml", "message": "no", "code": 403})), Ok(2));
        assert_eq!(entry(json!({"delete": pod, "message": "no"})), Ok(1));
        for (document, text) in [
            (json!({"file": "bad/two.yaml"}), "missing field `message`"),
            (json!({"file": "bad/two.yaml", "message": ""}), "is empty"),
            (json!({"file": "bad/two.yaml", "message": "x", "code": 200}), "400 to 599"),
            (json!({"file": "bad/two.yaml", "message": "x", "codes": 403}), "unknown field"),
            (json!({"file": "bad/none.yaml", "message": "x"}), "has no objects"),
            (json!({"file": "missing.yaml", "message": "x"}), "cannot read"),
            (json!({"message": "x"}), "either file or delete"),
            (json!({"file": "bad", "delete": pod, "message": "x"}), "either file or delete"),
            (json!({"delete": {"kind": "Pod"}, "message": "x"}), "add them"),
        ] {
            let error = entry(document).unwrap_err();
            assert!(error.contains(text), "{error}");
        }
    }
}
