#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| innkeeper_fuzz_tests::steps::fuzz_entry(data));
