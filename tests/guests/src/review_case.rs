//! The verdicts that a policy gives to some requests, as code and data of its guest.

use std::fmt::Write as _;

use crate::wat_text::escaped;

/// The least place of what a guest is given; the texts lie before it.
pub(crate) const HEAP_LEAST: usize = 128 << 10;

/// Where the texts of the cases lie: behind the verdict of [`Tiny::labelling`].
const CASES_AT: usize = 96 << 10;

/// A verdict for some requests.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// What the request has.
    texts: Vec<String>,
    verdict: String,
}

impl Case {
    /// This verdict for requests that have all of these texts.
    pub(crate) fn new(texts: Vec<String>, verdict: &str) -> Self {
        Self { texts, verdict: verdict.to_owned() }
    }
}

/// The code that answers with the verdict of the first case that fits, in wasm text.
pub(crate) fn decide(cases: &[Case]) -> String {
    let mut code = String::new();
    walk(cases, |case, at| {
        let mut condition = "(i32.const 1)".to_owned();
        for (text, at) in case.texts.iter().zip(&at[2..]) {
            let bytes = text.len();
            let found = format!(
                "(call $find (local.get $request) (local.get $length) (i32.const {at}) (i32.const {bytes}))"
            );
            condition = format!("(i32.and {condition} (i32.ne {found} (i32.const 0)))");
        }
        write!(code, "(if {condition} (then (return (i32.const {}))))", at[0]).unwrap();
    });
    code
}

/// The texts of the cases, in wasm text.
pub(crate) fn data(cases: &[Case]) -> String {
    let mut data = String::new();
    walk(cases, |case, at| {
        let mut result = vec![0; 4];
        for number in [at[1], case.verdict.len()] {
            result.extend(u32::try_from(number).unwrap().to_le_bytes());
        }
        let texts = [result.as_slice(), case.verdict.as_bytes()];
        let texts = texts.into_iter().chain(case.texts.iter().map(String::as_bytes));
        for (text, at) in texts.zip(at) {
            write!(data, "(data (i32.const {at}) \"{}\")", escaped(text)).unwrap();
        }
    });
    data
}

/// Gives each case with the addresses of its result, its verdict and its texts.
fn walk(cases: &[Case], mut with: impl FnMut(&Case, &[usize])) {
    let mut end = CASES_AT;
    for case in cases {
        let lengths =
            [12, case.verdict.len()].into_iter().chain(case.texts.iter().map(String::len));
        let mut addresses = Vec::new();
        for length in lengths {
            addresses.push(end);
            // The result has to lie at a multiple of four.
            end += length.next_multiple_of(4);
        }
        assert!(end <= HEAP_LEAST, "the cases of a policy take too many bytes");
        with(case, &addresses);
    }
}
