//! The limits of a guest, as a policy record has them.

use std::time::Duration;

use innkeeper_modules::{COMPILE_TIME_MAX, MEMORY_BYTES_MAX, OUTPUT_BYTES_MAX, REVIEW_TIME_MAX};
use innkeeper_sandbox::Limits;
use serde::{Deserialize, Serialize};

/// [`Limits`] as a record has them: times in milliseconds, sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecordedLimits {
    component_bytes: usize,
    compile_ms: u64,
    time_ms: u64,
    memory_bytes: usize,
    table_elements: usize,
    output_bytes: usize,
    objects: usize,
    reads: usize,
    log_bytes: usize,
}

impl RecordedLimits {
    /// Of the limits of a Module.
    pub fn of(limits: &Limits) -> Self {
        let Limits {
            component_bytes,
            compile_time,
            time,
            memory_bytes,
            table_elements,
            output_bytes,
            objects,
            reads,
            log_bytes,
        } = *limits;
        let (compile_ms, time_ms) = (milliseconds(compile_time), milliseconds(time));
        Self {
            component_bytes,
            compile_ms,
            time_ms,
            memory_bytes,
            table_elements,
            output_bytes,
            objects,
            reads,
            log_bytes,
        }
    }

    /// The limits.
    pub fn limits(&self) -> Limits {
        let Self {
            component_bytes,
            compile_ms,
            time_ms,
            memory_bytes,
            table_elements,
            output_bytes,
            objects,
            reads,
            log_bytes,
        } = *self;
        Limits {
            component_bytes,
            compile_time: Duration::from_millis(compile_ms),
            time: Duration::from_millis(time_ms),
            memory_bytes,
            table_elements,
            output_bytes,
            objects,
            reads,
            log_bytes,
        }
    }

    /// Names the limits beyond those that a Module may set.
    pub(super) fn check(&self, problems: &mut Vec<String>) {
        for (member, value, max) in [
            ("compileMs", self.compile_ms, milliseconds(COMPILE_TIME_MAX)),
            ("timeMs", self.time_ms, milliseconds(REVIEW_TIME_MAX)),
            ("memoryBytes", self.memory_bytes as u64, MEMORY_BYTES_MAX as u64),
            ("outputBytes", self.output_bytes as u64, OUTPUT_BYTES_MAX as u64),
            ("logBytes", self.log_bytes as u64, OUTPUT_BYTES_MAX as u64),
        ] {
            if value > max {
                problems.push(format!("settings.limits.{member}: {value} is more than {max}"));
            }
        }
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
