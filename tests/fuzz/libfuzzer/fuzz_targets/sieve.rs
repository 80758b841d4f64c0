#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| innkeeper_fuzz_tests::sieve::fuzz_entry(data));
