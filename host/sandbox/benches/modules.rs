//! What many modules take: the time to load 100 different ones, and the memory of each while
//! it is idle; from the code cache, and compiled.
//!
//! The modules are the bench guest with a custom section that tells them apart: other digests,
//! so other entries, other files and other mappings, of the same size.
//!
//! `cargo xtask guests` first, then `cargo bench -p innkeeper-sandbox --bench modules`.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a bench prints, and has nobody to tell of errors"
)]

mod support;

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

use innkeeper_sandbox::{
    CACHE_BYTES_DEFAULT, CacheFigures, CacheFolder, CacheKey, CodeCache, Compile, Engine, Guest,
    Limits, compile_child,
};
use support::{Memory, NoWorld, mib};

const COMPONENT: &str = "bench-guest";

const MODULES: u32 = 100;

/// Modules that are loaded and called before the measurement.
const ASIDE: u32 = 3;

/// Each in a process of its own, one after the other.
const ROWS: [(&str, &str); 4] = [
    ("compiled in this process, no cache", "in-process"),
    ("compiled in a child, no cache", "child"),
    ("compiled in a child, into an empty cache", "cache"),
    ("from the cache", "cache"),
];

/// What an idle module may take, in MiB: anonymous memory, and all of it.
const GOALS: [f64; 2] = [0.04, 0.3];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["compile"] => return compile_child(),
        ["measure", how, folder] => measure(how, Path::new(folder)),
        _ => compare(),
    }
    ExitCode::SUCCESS
}

fn compare() {
    let folder = tempfile::tempdir().expect("a folder");
    println!(
        "{MODULES} different modules of {} KiB; a module's memory in MiB as loaded / after one call \
         (goals {} and {})",
        component(0).len() >> 10,
        GOALS[0],
        GOALS[1],
    );
    println!(
        "{:42} {:>10} {:>10} {:>17} {:>17} {:>17}",
        "", "in all, s", "each, ms", "anonymous", "resident", "proportional"
    );
    for (row, how) in ROWS {
        let program = std::env::current_exe().expect("this program");
        let output = Command::new(program)
            .args(["measure", how])
            .arg(folder.path())
            .output()
            .expect("it starts");
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{row}: {}", String::from_utf8_lossy(&output.stderr));
        println!("{row:42} {}", printed.trim_end());
    }
    let (mut bytes, mut entries) = (0, 0);
    for entry in std::fs::read_dir(folder.path()).expect("the cache") {
        bytes += entry.and_then(|entry| entry.metadata()).expect("an entry").len();
        entries += 1;
    }
    println!("the cache has {entries} entries, {:.1} MiB", mib(bytes));
}

/// In a process that does nothing else.
fn measure(how: &str, folder: &Path) {
    let program = std::env::current_exe().expect("this program");
    let mut builder = Engine::builder();
    let mut cache = None;
    match how {
        "in-process" => {}
        "child" => builder = builder.compile(Compile::Child(program)),
        _ => {
            let folder = CacheFolder::open(folder).expect("a folder of ours");
            let key = CacheKey::Given([1; 32]);
            let opened = CodeCache::open(folder, &key, CACHE_BYTES_DEFAULT).expect("a cache");
            builder = builder.compile(Compile::Child(program)).cache(opened.clone());
            cache = Some(opened);
        }
    }
    let engine = builder.build().expect("an engine");
    // What only the first ones take is not every module's, so some stand aside. One is not enough:
    // after the first component was freed, the allocator takes the next ones from the heap, which
    // keeps the piece for the bytes of the one after.
    let first: Vec<Guest> = (0..ASIDE).map(|number| load(&engine, number)).collect();
    for guest in &first {
        call(guest);
    }

    let before = Memory::now();
    let mut guests = Vec::with_capacity(MODULES as usize);
    let started = Instant::now();
    for number in ASIDE..ASIDE + MODULES {
        guests.push(load(&engine, number));
    }
    let time = started.elapsed();
    let loaded = Memory::now();
    for guest in &guests {
        call(guest);
    }
    let called = Memory::now();
    if let Some(cache) = cache {
        let CacheFigures { hits, misses, refused, .. } = cache.figures();
        assert!(hits == 0 || misses == 0, "neither warm nor cold");
        assert_eq!(refused, 0);
    }
    let both = |of: fn(&Memory) -> u64| {
        let each = |now: &Memory| mib(of(now).saturating_sub(of(&before))) / f64::from(MODULES);
        format!("{:.3} / {:.3}", each(&loaded), each(&called))
    };
    println!(
        "{:10.2} {:10.2} {:>17} {:>17} {:>17}",
        time.as_secs_f64(),
        time.as_secs_f64() * 1e3 / f64::from(MODULES),
        both(|memory| memory.anonymous),
        both(|memory| memory.resident),
        both(|memory| memory.proportional),
    );
}

fn load(engine: &Engine, number: u32) -> Guest {
    engine.load(&component(number), &Limits::default()).expect("a guest")
}

fn call(guest: &Guest) {
    guest.reconcile(include_str!("observed.json"), &mut NoWorld).expect("it reconciles");
}

/// The bench guest, and a custom section with a number.
fn component(number: u32) -> Vec<u8> {
    let mut bytes = support::component(COMPONENT);
    // Kind 0, its length, the length of its name, name and contents.
    bytes.extend([0, 9, 4]);
    bytes.extend(b"copy");
    bytes.extend(number.to_le_bytes());
    bytes
}
