//! Compiling in a child process. The test program is its own child: started with the argument
//! `compile` it is the compiler, or, under another name, one that misbehaves.

#![allow(clippy::unwrap_used, reason = "all of this is a test, marked or not")]

mod guests;
#[path = "compile/schema.rs"]
mod schema;
#[path = "compile/setup.rs"]
mod setup;

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use guests::kubewarden::Kubewarden;
use guests::{Cluster, Tiny};
use innkeeper_sandbox::{
    Compile, Engine, Guest, Interruption, Limits, LoadError, Outcome, compile_child, confine,
    forbid_tracing,
};
use libtest_mimic::{Arguments, Failed, Trial};

use crate::setup::{Setup, build, setup};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let program = arguments.next().unwrap_or_default();
    if arguments.next().as_deref() == Some(OsStr::new("compile")) {
        return compiler(Path::new(&program));
    }
    let trials = [
        ("component_compiled_in_a_child_runs", compiles as fn()),
        ("component_compiled_for_fuel_runs", compiles_for_fuel),
        ("kubewarden_policy_compiled_in_a_child_runs", compiles_a_module),
        ("loaded_component_leaves_no_file_in_the_folder", leaves_nothing),
        ("invalid_component_is_refused_with_the_compilers_reason", invalid),
        ("component_of_too_many_parts_is_a_permanent_error", too_many_parts),
        ("hanging_compiler_is_stopped", hangs),
        ("component_that_compiles_too_long_is_refused", bombs),
        ("compiler_that_aborts_is_a_permanent_error", aborts),
        ("compiler_that_fails_is_a_temporary_error", fails),
        ("artifact_of_another_build_is_refused", garbles),
        ("missing_compiler_is_named", missing_program),
        ("missing_folder_is_named", missing_folder),
        ("compiler_that_is_killed_counts_against_the_component", killed),
        ("compiler_without_memory_counts_against_the_component", without_memory),
        ("compiler_that_starts_a_process_is_stopped_with_it", forks),
        ("confined_child_opens_starts_and_signals_nothing", confined),
        ("artifact_that_is_too_large_is_not_mapped", floods),
        ("process_that_forbids_tracing_is_not_dumpable", undumpable),
        ("schema_is_evaluated_in_a_child", schema::evaluated),
        ("schema_beyond_the_bounds_starts_no_child", schema::bounded),
        ("child_that_fails_on_a_schema_gives_its_cause", schema::failing),
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

/// Runs this program as a child, by its name.
fn compiler(program: &Path) -> ExitCode {
    match program.file_name().and_then(OsStr::to_str) {
        Some("hang") => loop {
            std::thread::park();
        },
        Some("abort") => std::process::abort(),
        Some("fail") => {
            std::io::stderr().write_all(b"disk full\n").unwrap();
            ExitCode::from(3)
        }
        Some("garble") => {
            std::io::stdout().write_all(b"\x7fELF and then nothing of use").unwrap();
            ExitCode::SUCCESS
        }
        Some("killed") => {
            let own = rustix::process::getpid();
            rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
            ExitCode::SUCCESS
        }
        Some("fork") => {
            // The process has the same standard error, which the host reads to its end.
            let mut sleeping = Command::new("/bin/sleep").arg("300").spawn().unwrap();
            sleeping.wait().unwrap();
            ExitCode::SUCCESS
        }
        Some("flood") => {
            // A hole takes no space.
            rustix::fs::ftruncate(io::stdout(), 300 << 20).unwrap();
            ExitCode::SUCCESS
        }
        Some("undumpable") => {
            use rustix::process::{DumpableBehavior, dumpable_behavior};
            let before = dumpable_behavior().unwrap();
            forbid_tracing().unwrap();
            let is_closed = dumpable_behavior().unwrap() == DumpableBehavior::NotDumpable;
            ExitCode::from(if before != DumpableBehavior::NotDumpable && is_closed { 3 } else { 4 })
        }
        Some("confined") => {
            let parent = rustix::process::getppid().unwrap();
            let missing = confine();
            let (code, text) = escape(parent);
            let text = format!("{text}; missing: {missing:?}");
            io::stderr().write_all(text.as_bytes()).unwrap();
            ExitCode::from(code)
        }
        _ => compile_child(),
    }
}

/// Tries what the code of an attacker would try in a child; gives 3 if the kernel refuses all of
/// it.
fn escape(parent: rustix::process::Pid) -> (u8, String) {
    let tried = [
        ("open", std::fs::File::open("/proc/self/environ").is_ok()),
        ("create", std::fs::File::create("/tmp/escaped").is_ok()),
        ("list", std::fs::read_dir("/").is_ok()),
        ("start", Command::new("/bin/true").spawn().is_ok()),
        ("thread", std::thread::Builder::new().spawn(|| ()).is_ok()),
        ("listen", std::net::TcpListener::bind("127.0.0.1:0").is_ok()),
        ("connect", std::net::UdpSocket::bind("127.0.0.1:0").is_ok()),
        ("socket", std::os::unix::net::UnixStream::pair().is_ok()),
        ("signal", rustix::process::test_kill_process(parent).is_ok()),
        (
            "raise limits",
            rustix::process::setrlimit(
                rustix::process::Resource::Nofile,
                rustix::process::Rlimit { current: Some(1), maximum: Some(1) },
            )
            .is_ok(),
        ),
        (
            "be traced",
            rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::Dumpable)
                .is_ok(),
        ),
    ];
    let done: Vec<_> = tried.iter().filter(|(_, done)| *done).map(|(what, _)| *what).collect();
    // The child needs memory and time.
    let works = vec![1_u8; 8 << 20].len() + usize::from(Instant::now().elapsed().as_secs() == 0);
    if done.is_empty() && works > 8 << 20 {
        (3, "nothing worked".to_owned())
    } else {
        (4, format!("it could {done:?}"))
    }
}

fn load(setup: &Setup, limits: &Limits) -> Result<Guest, LoadError> {
    setup.engine.load(&Tiny::default().component(), limits)
}

fn runs(interruption: Interruption) {
    let setup = setup("innkeeper", interruption);
    let guest = load(&setup, &Limits::default()).unwrap();
    for _ in 0..3 {
        let run = guest.reconcile("{}", &mut Cluster::default()).unwrap();
        assert!(matches!(run.outcome, Outcome::Complete(_)));
    }
}

fn compiles() {
    runs(Interruption::Epoch);
}

fn compiles_a_module() {
    let setup = setup("child", Interruption::Epoch);
    let policy = Kubewarden::default();
    let guest = setup.engine.load(&policy.module(), &Limits::default()).unwrap();
    let request = r#"{"operation":"CREATE","kind":{"version":"v1","kind":"ConfigMap"},
        "resource":{"version":"v1","resource":"configmaps"}}"#;
    guest.review(request, &mut Cluster::default()).unwrap();
    // The compiler finds the problem, behind the metadata that the host reads itself.
    let invalid = Kubewarden::default().with("(func (result i32))").module();
    let error = setup.engine.load(&invalid, &Limits::default()).unwrap_err();
    assert_eq!(error.reason(), "CompileFailed");
}

fn compiles_for_fuel() {
    runs(Interruption::Fuel);
}

fn too_many_parts() {
    let setup = setup("innkeeper", Interruption::Epoch);
    let instances = "(core instance (instantiate $m))".repeat(100);
    let component = wat::parse_str(format!("(component (core module $m) {instances})")).unwrap();
    let error = setup.engine.load(&component, &Limits::default()).unwrap_err();
    // The component causes the error: an operator need not check the host's file systems.
    assert_eq!((error.reason(), error.is_temporary()), ("CompileFailed", false), "{error}");
    assert!(error.to_string().contains("100 core module instances"), "{error}");
}

fn leaves_nothing() {
    let setup = setup("innkeeper", Interruption::Epoch);
    let _guest = load(&setup, &Limits::default()).unwrap();
    assert_eq!(std::fs::read_dir(setup.folder.path()).unwrap().count(), 0);
}

fn invalid() {
    let bytes = Tiny::default().component();
    let cut = &bytes[..bytes.len() / 2];
    let setup = setup("innkeeper", Interruption::Epoch);
    let error = setup.engine.load(cut, &Limits::default()).unwrap_err();
    let here = guests::engine(Interruption::Epoch).load(cut, &Limits::default()).unwrap_err();
    assert_eq!(error, here);
    assert_eq!(error.reason(), "CompileFailed");
}

fn hangs() {
    let limit = Duration::from_millis(100);
    let setup = setup("hang", Interruption::Epoch);
    let error = load(&setup, &Limits { compile_time: limit, ..Limits::default() }).unwrap_err();
    assert_eq!(error, LoadError::CompileTimeout { limit });
    assert_eq!(std::fs::read_dir(setup.folder.path()).unwrap().count(), 0);
}

fn bombs() {
    let bomb = Tiny::bomb().component();
    assert!(bomb.len() < 8 << 20, "{} bytes", bomb.len());
    let limit = Duration::from_secs(1);
    let setup = setup("innkeeper", Interruption::Epoch);
    let limits = Limits { compile_time: limit, ..Limits::default() };
    let error = setup.engine.load(&bomb, &limits).unwrap_err();
    assert_eq!(error, LoadError::CompileTimeout { limit });
    assert_eq!(std::fs::read_dir(setup.folder.path()).unwrap().count(), 0);
    // The next component is compiled.
    load(&setup, &Limits::default()).unwrap();
}

fn aborts() {
    let setup = setup("abort", Interruption::Epoch);
    let error = load(&setup, &Limits::default()).unwrap_err();
    assert_eq!(error.reason(), "CompileFailed");
}

fn fails() {
    let setup = setup("fail", Interruption::Epoch);
    let error = load(&setup, &Limits::default()).unwrap_err();
    assert!(error.is_temporary());
    assert_eq!(
        error.to_string(),
        "the host cannot compile: the compiler ended with exit status: 3 (disk full)"
    );
}

fn garbles() {
    let setup = setup("garble", Interruption::Epoch);
    let error = load(&setup, &Limits::default()).unwrap_err();
    assert_eq!(error.reason(), "CompilerUnavailable");
}

fn missing_program() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("missing");
    let engine = build(program.clone(), folder.path(), Interruption::Epoch);
    let error = engine.load(&Tiny::default().component(), &Limits::default()).unwrap_err();
    assert!(error.is_temporary());
    assert!(error.to_string().contains(program.to_str().unwrap()), "{error}");
}

fn missing_folder() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let engine = build(std::env::current_exe().unwrap(), &missing, Interruption::Epoch);
    let error = engine.load(&Tiny::default().component(), &Limits::default()).unwrap_err();
    assert!(error.is_temporary());
    assert!(error.to_string().contains(missing.to_str().unwrap()), "{error}");
}

fn killed() {
    let setup = setup("killed", Interruption::Epoch);
    let error = load(&setup, &Limits::default()).unwrap_err();
    assert_eq!((error.reason(), error.is_temporary()), ("CompileKilled", false), "{error}");
    assert_eq!(std::fs::read_dir(setup.folder.path()).unwrap().count(), 0);
}

fn without_memory() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::builder()
        .guests(2)
        .compile(Compile::Child(std::env::current_exe().unwrap()))
        .artifacts(folder.path())
        .memory(96 << 20)
        .build()
        .unwrap();
    let error = engine.load(&Tiny::bomb().component(), &Limits::default()).unwrap_err();
    assert_eq!((error.reason(), error.is_temporary()), ("CompileFailed", false), "{error}");
    assert!(error.to_string().contains("may take 50331648 bytes"), "{error}");
    // A small component has room.
    engine.load(&Tiny::default().component(), &Limits::default()).unwrap();
}

fn forks() {
    let limit = Duration::from_millis(300);
    let setup = setup("fork", Interruption::Epoch);
    let began = Instant::now();
    let error = load(&setup, &Limits { compile_time: limit, ..Limits::default() }).unwrap_err();
    assert_eq!(error, LoadError::CompileTimeout { limit });
    assert!(began.elapsed() < Duration::from_mins(1), "{:?}", began.elapsed());
}

fn confined() {
    let setup = setup("confined", Interruption::Epoch);
    let error = load(&setup, &Limits::default()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("exit status: 3 (nothing worked"), "{text}");
}

fn floods() {
    let setup = setup("flood", Interruption::Epoch);
    let error = load(&setup, &Limits::default()).unwrap_err();
    assert_eq!((error.reason(), error.is_temporary()), ("CompileFailed", false), "{error}");
    assert!(error.to_string().contains("its code would have more than"), "{error}");
    assert_eq!(std::fs::read_dir(setup.folder.path()).unwrap().count(), 0);
}

fn undumpable() {
    let setup = setup("undumpable", Interruption::Epoch);
    let error = load(&setup, &Limits::default()).unwrap_err();
    assert!(error.to_string().contains("exit status: 3"), "{error}");
}
