//! Creates what a case needs before it runs.

use bytes::Bytes;
use http::{Request, header};
use serde_json::Value;

use crate::outcome::{ATTEMPTS, is_unknown};
use crate::server::{Failure, Server};

/// Creates an object that is nobody else's in a collection.
///
/// # Errors
/// If the server does not answer, or refuses the object.
pub fn create(server: &dyn Server, collection: &str, body: &Value) -> Result<(), Failure> {
    let mut accepted = vec![201];
    for attempt in 1..=ATTEMPTS {
        let request = Request::post(collection).header(header::CONTENT_TYPE, "application/json");
        match server.send(request.body(Bytes::from(body.to_string()))?) {
            // The object may be there: then the next create finds it.
            Err(failure) if is_unknown(&failure) && attempt < ATTEMPTS => accepted.push(409),
            Err(failure) => return Err(failure),
            Ok(reply) if accepted.contains(&reply.code) => break,
            Ok(reply) => return Err(format!("{collection}: {} {}", reply.code, reply.body).into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use serde_json::json;

    use super::*;
    use crate::outcome::OutcomeUnknown;
    use crate::server::{Reply, Wait};

    /// Answers with these codes in turn; 0 stands for an unknown outcome.
    struct Scripted(RefCell<Vec<u16>>);

    impl Server for Scripted {
        fn send(&self, _: Request<Bytes>) -> Result<Reply, Failure> {
            match self.0.borrow_mut().remove(0) {
                0 => Err(OutcomeUnknown("500".to_owned()).into()),
                code => Ok(Reply { code, body: Value::Null, warnings: Vec::new() }),
            }
        }

        fn settle(&self, _: Wait) -> Result<(), Failure> {
            Ok(())
        }
    }

    #[test]
    fn taken_name_is_accepted_only_after_an_unknown_outcome() {
        for (codes, is_created, left) in [
            (vec![201, 9], true, 1),
            (vec![0, 409, 9], true, 1),
            (vec![0, 0, 201, 9], true, 1),
            (vec![409, 9], false, 1),
            (vec![0, 403, 9], false, 1),
            (vec![0, 0, 0, 0, 0, 9], false, 1),
        ] {
            let server = Scripted(RefCell::new(codes));
            let created = create(&server, "/api/v1/namespaces", &json!({}));
            assert_eq!(created.is_ok(), is_created);
            assert_eq!(server.0.borrow().len(), left);
        }
    }
}
