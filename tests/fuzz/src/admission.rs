//! Requests that an API server sends to the admission server.

use innkeeper_admission::{AdmissionRequest, AdmissionResponse};

/// Reads an AdmissionReview. The response to what is read names the same `uid`; the message of an
/// error is short.
pub fn fuzz_entry(data: &[u8]) {
    match AdmissionRequest::read(data) {
        Ok(request) => {
            let uid = &*request.uid;
            assert!(!uid.is_empty() && uid.len() <= 128, "a uid of {} bytes", uid.len());
            let response = AdmissionResponse::allowed().review(uid);
            assert_eq!(response["response"]["uid"], uid);
            assert_eq!(response["response"]["allowed"], true);
        }
        Err(error) => {
            let message = error.to_string();
            assert!(!message.is_empty() && message.len() < 4_096, "{message}");
        }
    }
}
