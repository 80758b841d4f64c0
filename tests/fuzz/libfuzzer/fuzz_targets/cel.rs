#![no_main]

use std::sync::Once;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    // The evaluator catches panics of its library, at which the hook of libFuzzer ends the search.
    static HOOK: Once = Once::new();
    HOOK.call_once(|| std::panic::set_hook(Box::new(|panic| eprintln!("{panic}"))));
    innkeeper_fuzz_tests::cel::fuzz_entry(data);
});
