//! The access that a child gives up before it reads the input of a guest.

/// Gives up, for this process and for good, all access that compiling and evaluating do not need:
/// opening files, network, starting processes and threads, tracing, and signals to others. Open
/// files stay open. The kernel enforces it by Landlock and by a filter of system calls (seccomp).
///
/// Returns the restrictions that the kernel lacks, a line each. The process must have one thread.
pub fn confine() -> Vec<String> {
    platform::confine()
}

/// Keeps processes of the same user from tracing this one and from reading its memory.
///
/// # Errors
/// If the kernel refuses.
pub fn forbid_tracing() -> std::io::Result<()> {
    platform::forbid_tracing()
}

#[cfg(target_os = "linux")]
mod platform {
    use std::collections::BTreeMap;
    use std::io;

    use landlock::{
        ABI, Access as _, AccessFs, AccessNet, Ruleset, RulesetAttr as _, RulesetStatus, Scope,
    };
    use rustix::process::{
        DumpableBehavior, Signal, getpid, set_dumpable_behavior, set_parent_process_death_signal,
    };
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule,
    };

    /// System calls that compiling and evaluating need: memory, time, random numbers, and open
    /// files.
    const ALLOWED: [i64; 31] = [
        libc::SYS_brk,
        libc::SYS_clock_getres,
        libc::SYS_clock_gettime,
        libc::SYS_close,
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_fstat,
        libc::SYS_futex,
        libc::SYS_getpid,
        libc::SYS_getrandom,
        libc::SYS_gettid,
        libc::SYS_gettimeofday,
        libc::SYS_lseek,
        libc::SYS_madvise,
        libc::SYS_mmap,
        libc::SYS_mprotect,
        libc::SYS_mremap,
        libc::SYS_munmap,
        libc::SYS_nanosleep,
        libc::SYS_pread64,
        libc::SYS_read,
        libc::SYS_readv,
        libc::SYS_restart_syscall,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sched_getaffinity,
        libc::SYS_sched_yield,
        libc::SYS_sigaltstack,
        libc::SYS_write,
        libc::SYS_writev,
    ];

    /// Gives an access up; the error is the reason why that is not possible.
    type Step = fn() -> Result<(), String>;

    pub(super) fn confine() -> Vec<String> {
        // The kernel kills a compiler before the host if memory is short. This comes first: a
        // process that is not dumpable cannot open its own /proc files.
        let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
        let steps: [(&str, Step); 4] = [
            ("it may outlive its host", || {
                set_parent_process_death_signal(Some(Signal::KILL)).map_err(text)
            }),
            ("its memory can be read by processes of its user", || forbid_tracing().map_err(text)),
            ("Landlock does not keep files and network from it", landlock),
            ("seccomp does not keep system calls from it", seccomp),
        ];
        let mut missing = Vec::new();
        for (what, step) in steps {
            if let Err(why) = step() {
                missing.push(format!("{what} ({})", why.replace('\n', " ")));
            }
        }
        missing
    }

    pub(super) fn forbid_tracing() -> io::Result<()> {
        Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
    }

    /// Restricts this process by a set of rules that allows no file, port, or signal to others.
    fn landlock() -> Result<(), String> {
        let status = Ruleset::default()
            .handle_access(AccessFs::from_all(ABI::V6))
            .and_then(|rules| rules.handle_access(AccessNet::from_all(ABI::V6)))
            .and_then(|rules| rules.scope(Scope::from_all(ABI::V6)))
            .and_then(Ruleset::create)
            .and_then(landlock::RulesetCreated::restrict_self)
            .map_err(text)?;
        match status.ruleset {
            RulesetStatus::FullyEnforced => Ok(()),
            RulesetStatus::PartiallyEnforced => Err("the kernel has a part of it".to_owned()),
            RulesetStatus::NotEnforced => Err("the kernel has none".to_owned()),
        }
    }

    fn seccomp() -> Result<(), String> {
        let own = u64::from(getpid().as_raw_nonzero().get().unsigned_abs());
        let to_itself = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, own)
            .and_then(|condition| SeccompRule::new(vec![condition]))
            .map_err(text)?;
        let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
            ALLOWED.into_iter().map(|call| (call, Vec::new())).collect();
        // A process aborts by this system call.
        rules.insert(libc::SYS_tgkill, vec![to_itself]);
        let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        let arch = std::env::consts::ARCH.try_into().map_err(text)?;
        let filter =
            SeccompFilter::new(rules, refused, SeccompAction::Allow, arch).map_err(text)?;
        let program: BpfProgram = filter.try_into().map_err(text)?;
        seccompiler::apply_filter(&program).map_err(text)
    }

    fn text(error: impl std::fmt::Display) -> String {
        error.to_string()
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    pub(super) fn confine() -> Vec<String> {
        vec!["Landlock and seccomp are parts of Linux".to_owned()]
    }

    pub(super) fn forbid_tracing() -> std::io::Result<()> {
        Ok(())
    }
}
