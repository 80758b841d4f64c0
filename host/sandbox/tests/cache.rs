//! Compiled code on disk. The test program is its own child: started with the argument
//! `compile` it is the compiler, with `read-only` it is a host without the right to write.

#![allow(clippy::unwrap_used, reason = "all of this is a test, marked or not")]

#[path = "cache/bounds.rs"]
mod bounds;
#[path = "cache/folder.rs"]
mod folder;
mod guests;
#[path = "cache/loads.rs"]
mod loads;
#[path = "cache/read_only.rs"]
mod read_only;
#[path = "cache/refusals.rs"]
mod refusals;
#[path = "cache/support.rs"]
mod support;

use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;

use innkeeper_sandbox::compile_child;
use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next().as_deref().and_then(OsStr::to_str) {
        Some("compile") => return compile_child(),
        Some("read-only") => {
            read_only::read_only_host(Path::new(&arguments.next().unwrap()));
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    let trials = [
        ("second_load_runs_no_compiler", loads::second_load as fn()),
        ("code_compiled_in_process_is_kept", loads::in_process),
        ("guest_runs_after_its_entry_is_deleted", loads::outlives),
        ("entry_with_a_changed_byte_is_refused", refusals::tampered),
        ("entry_of_another_length_is_refused", refusals::wrong_length),
        ("entry_sealed_with_another_key_is_refused", refusals::other_key),
        ("entry_under_another_name_is_refused", refusals::other_name),
        ("entry_that_others_may_write_to_is_refused", refusals::writable_entry),
        ("entry_of_another_user_is_refused", refusals::foreign_entry),
        ("entry_that_is_no_regular_file_is_refused", refusals::no_file),
        ("code_for_other_settings_is_not_used", loads::other_settings),
        ("component_that_cannot_be_compiled_leaves_no_entry", loads::nothing_kept),
        ("folder_is_made_for_this_user_alone", folder::made),
        ("folder_that_others_may_write_to_is_refused", folder::writable_folder),
        ("folder_of_another_user_is_refused", folder::foreign_folder),
        ("folder_that_is_a_file_is_refused", folder::file_as_folder),
        ("kept_key_is_made_once_and_for_this_user_alone", folder::kept_key),
        ("kept_key_of_wrong_mode_or_length_is_refused", folder::wrong_keys),
        ("full_cache_evicts_the_entry_unused_for_longest", bounds::evicts),
        ("code_larger_than_the_cache_is_not_kept", bounds::too_large),
        ("unfinished_entry_of_a_killed_host_is_deleted_after_an_hour", bounds::abandoned),
        ("concurrent_loads_leave_one_good_entry_per_component", loads::concurrent),
        ("read_only_folder_is_read_with_one_warning", read_only::read_only),
    ]
    .into_iter()
    .map(|(name, test)| {
        Trial::test(name, move || {
            test();
            Ok::<_, Failed>(())
        })
    })
    .collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
