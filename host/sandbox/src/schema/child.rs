//! The evaluation of a schema in a child process.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::error::{SchemaError, text};
use super::{check_bounds, evaluate, validate};
use crate::child_process::{self, ChildError, Refusal, Request, Task};
use crate::runtime::Runtime;
use crate::settings::Compile;

/// Wall-clock time of one evaluation in a child. With the bounds on schemas it takes far less.
pub const VALIDATE_TIME: Duration = Duration::from_secs(10);

/// The largest answer of the child, in bytes.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// The input of the child.
#[derive(Deserialize)]
struct Input {
    schema: Value,
    document: Value,
}

/// Checks the bounds in this process, and evaluates in a child if the engine compiles in one.
///
/// # Errors
/// [`SchemaError`].
pub(crate) fn validate_confined(
    runtime: &Runtime,
    schema: &Value,
    document: &Value,
) -> Result<(), SchemaError> {
    let Compile::Child(program) = &runtime.compile else { return validate(schema, document) };
    check_bounds(schema, document)?;
    let _place = runtime.validators.enter();
    in_child(runtime, program, schema, document)
        .unwrap_or_else(|error| Err(SchemaError::Unavailable(text(&error.to_string()))))
}

fn in_child(
    runtime: &Runtime,
    program: &Path,
    schema: &Value,
    document: &Value,
) -> io::Result<Result<(), SchemaError>> {
    let input = serde_json::to_vec(&json!({"schema": schema, "document": document}))?;
    let memory = runtime.shares.validator_bytes;
    let stdin = Request::new(Task::Validate, VALIDATE_TIME, memory, ANSWER_BYTES_MAX)
        .file(&runtime.artifacts, &input)?;
    let mut answer = tempfile::tempfile_in(&runtime.artifacts)?;
    if let Err(error) = child_process::run(program, stdin, answer.try_clone()?, VALIDATE_TIME) {
        return Ok(Err(refused(error, memory)));
    }
    read(&mut answer)
}

fn read(answer: &mut File) -> io::Result<Result<(), SchemaError>> {
    answer.rewind()?;
    let mut json = Vec::new();
    answer.take(ANSWER_BYTES_MAX).read_to_end(&mut json)?;
    Ok(serde_json::from_slice(&json)?)
}

/// The error of a schema for which the child gave no answer.
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
            SchemaError::Unavailable(text(&what))
        }
    }
}

/// Evaluates a schema, in the child, and gives the answer as JSON.
///
/// # Errors
/// [`Refusal::Unavailable`] for an input or answer that is no JSON.
pub(crate) fn validate_here(input: &[u8]) -> Result<Vec<u8>, Refusal> {
    let unavailable = |error: serde_json::Error| Refusal::Unavailable(error.to_string());
    let Input { schema, document } = serde_json::from_slice(input).map_err(unavailable)?;
    serde_json::to_vec(&evaluate::evaluate(&schema, &document)).map_err(unavailable)
}
