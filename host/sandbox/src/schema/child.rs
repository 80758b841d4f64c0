//! The evaluation of a schema in a child process.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{SchemaError, check_bounds, evaluate, validate};
use crate::child::{self, ChildError, Refusal, Request, Task};
use crate::compile::Compile;
use crate::engine::Shared;

/// Wall-clock time of one evaluation in a child. The bounds keep it far below.
pub const VALIDATE_TIME: Duration = Duration::from_secs(10);

/// What the child may answer, in bytes.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// What the child reads.
#[derive(Deserialize)]
struct Input {
    schema: Value,
    document: Value,
}

/// Checks the bounds here, and evaluates where the engine compiles.
pub(crate) fn validate_confined(
    shared: &Shared,
    schema: &Value,
    document: &Value,
) -> Result<(), SchemaError> {
    let Compile::Child(program) = &shared.compile else { return validate(schema, document) };
    check_bounds(schema, document)?;
    let _place = shared.validators.enter();
    in_child(shared, program, schema, document)
        .unwrap_or_else(|error| Err(SchemaError::Unavailable(super::text(&error.to_string()))))
}

fn in_child(
    shared: &Shared,
    program: &Path,
    schema: &Value,
    document: &Value,
) -> io::Result<Result<(), SchemaError>> {
    let input = serde_json::to_vec(&json!({"schema": schema, "document": document}))?;
    let memory = shared.shares.validator_bytes;
    let stdin = Request::new(Task::Validate, VALIDATE_TIME, memory, ANSWER_BYTES_MAX)
        .file(&shared.artifacts, &input)?;
    let mut answer = tempfile::tempfile_in(&shared.artifacts)?;
    if let Err(error) = child::run(program, stdin, answer.try_clone()?, VALIDATE_TIME) {
        return Ok(Err(refused(error, memory)));
    }
    read(&mut answer)
}

fn read(answer: &mut File) -> io::Result<Result<(), SchemaError>> {
    answer.rewind()?;
    let mut text = Vec::new();
    answer.take(ANSWER_BYTES_MAX).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

/// What it says of the schema that the child gave no answer.
fn refused(error: ChildError, memory: u64) -> SchemaError {
    match error {
        ChildError::TimedOut => {
            SchemaError::TooCostly(format!("evaluating it took longer than {VALIDATE_TIME:?}"))
        }
        ChildError::OutputTooLarge => {
            SchemaError::TooCostly(format!("its answer has more than {ANSWER_BYTES_MAX} bytes"))
        }
        ChildError::Crashed(_) | ChildError::Killed => {
            SchemaError::TooCostly(format!("evaluating it took more than {memory} bytes of memory"))
        }
        ChildError::Refused(what) | ChildError::Unavailable(what) => {
            SchemaError::Unavailable(super::text(&what))
        }
    }
}

/// In the child: evaluates, and gives the answer as JSON.
pub(crate) fn validate_here(input: &[u8]) -> Result<Vec<u8>, Refusal> {
    let trouble = |error: serde_json::Error| Refusal::Unavailable(error.to_string());
    let Input { schema, document } = serde_json::from_slice(input).map_err(trouble)?;
    serde_json::to_vec(&evaluate::evaluate(&schema, &document)).map_err(trouble)
}
