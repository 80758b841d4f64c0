//! Guests that take time, stack, memory, tables, reads and logs without end.

use innkeeper_tiny_guests::{CLOCK, LOG, SCRATCH, get};
use serde_json::json;

use crate::case::Case;
use crate::guests::guest;

/// Time, stack, memory, tables, reads, logs.
pub(crate) fn excessive_use() -> Vec<Case> {
    endless_runs().into_iter().chain(growth_to_a_limit()).chain(floods()).collect()
}

fn endless_runs() -> [Case; 3] {
    let short = json!({"timeout": "200ms"});
    [
        Case::runs(
            "endless-loop",
            &guest().on_reconcile("(loop $l (br $l))"),
            ("False", "GuestTimeout", "ran longer than 200ms"),
        )
        .limits(&short),
        Case::runs(
            "endless-calls-of-the-host",
            &guest().importing(CLOCK).on_reconcile("(loop $l (drop (call $now)) (br $l))"),
            ("False", "GuestTimeout", "ran longer than 200ms"),
        )
        .limits(&short),
        Case::runs(
            "endless-recursion",
            &guest().with("(func $deeper (call $deeper))").on_reconcile("(call $deeper)"),
            ("False", "GuestTrapped", "call stack exhausted"),
        ),
    ]
}

fn growth_to_a_limit() -> [Case; 2] {
    [
        Case::runs(
            "memory-to-the-limit",
            &guest().on_reconcile(
                "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))) unreachable",
            ),
            ("False", "GuestOutOfMemory", "more than 67108864 bytes of memory"),
        ),
        Case::runs(
            "table-to-the-limit",
            &guest().with("(table $t 1 funcref)").on_reconcile(
                "(loop $l (br_if $l (i32.ne (table.grow $t (ref.null func) (i32.const 100)) (i32.const -1)))) unreachable",
            ),
            ("False", "GuestTableTooLarge", "more than 20000 table elements"),
        ),
    ]
}

fn floods() -> [Case; 3] {
    [
        Case::runs(
            "endless-reads",
            &guest()
                .importing(innkeeper_tiny_guests::READS)
                .data(SCRATCH, "v1ConfigMapnscm")
                .on_reconcile(&format!("(loop $l {} (br $l))", get())),
            ("False", "TooManyReads", "more than 10000 times"),
        ),
        Case::runs(
            "log-flood",
            &guest().importing(LOG).data(SCRATCH, "flood flood").on_reconcile(&format!(
                "(loop $l
                     (call $log (i32.const 1) (i32.const {SCRATCH}) (i32.const 11))
                     (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1)))
                                         (i32.const 50000))))"
            )),
            ("True", "Applied", ""),
        ),
        Case::runs(
            "log-forgery",
            &guest().importing(LOG).data(SCRATCH, FORGED).on_reconcile(&format!(
                "(call $log (i32.const 1) (i32.const {SCRATCH}) (i32.const {}))",
                FORGED.len()
            )),
            ("True", "Applied", ""),
        ),
    ]
}

/// What a guest logs that wants its line to look like one of the host's.
pub(crate) const FORGED: &str =
    "x\n{\"level\":\"INFO\",\"message\":\"serves\",\"module\":\"forged\"}";
