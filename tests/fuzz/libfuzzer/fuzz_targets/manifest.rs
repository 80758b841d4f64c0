#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| innkeeper_fuzz_tests::manifest::fuzz_entry(data));
