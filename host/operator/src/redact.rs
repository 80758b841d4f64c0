//! Masks the values of granted Secrets in texts.
//!
//! The search finds each value literally, in base64 (both alphabets, also as a part of a longer
//! base64 text) and in hexadecimal digits. It does not find a value that a guest reverses or splits
//! on purpose: the Module allows that guest to write the bytes anyway.

mod encodings;

use std::collections::BTreeSet;

use aho_corasick::Anchored;
use aho_corasick::automaton::{Automaton as _, StateID};
use aho_corasick::nfa::contiguous::NFA;
use innkeeper_core::foreign;

use self::encodings::{encoded_at, go_json, go_quoted, pieces, quoted, text_pieces};

/// Replaces a value in a text.
pub const MASK: &str = "[redacted]";

/// Replaces the type of a condition, or a reason, that contains a value: these must be words.
pub const MASKED_WORD: &str = "Redacted";

/// The fewest bytes of a value that the search looks for: a shorter one would be found in any text.
pub const VALUE_BYTES_MIN: usize = 8;

/// The most bytes of all values of one run together.
pub const VALUES_BYTES_MAX: usize = 128 << 10;

/// The host writes this where it cut a text.
const CUT: &[u8] = b"...";

/// The fewest bytes of the beginning of a value that is masked before [`CUT`]: many words have the
/// same few first letters.
const CUT_VALUE_BYTES_MIN: usize = 4;

/// The most bytes between two found pieces that are part of the value: a character of base64 holds
/// bits of both neighbours.
const GAP_MAX: usize = 4;

/// Masks the values of Secrets in texts.
#[derive(Default)]
pub struct Redactor {
    /// The values literally, and escaped as in quotations.
    plain: Option<NFA>,
    /// The values in base64 with the standard alphabet.
    base64: Option<NFA>,
    /// The values in lower-case hexadecimal digits.
    hex: Option<NFA>,
}

impl Redactor {
    /// Masks these values.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut plain = BTreeSet::new();
        let mut base64 = BTreeSet::new();
        let mut hexadecimal = BTreeSet::new();
        for value in values {
            // A guest may trim the end of a line.
            let value = value.trim_ascii();
            if value.len() < VALUE_BYTES_MIN {
                continue;
            }
            // Bytes that are no text become replacement characters, which show nothing.
            let text = String::from_utf8_lossy(value);
            for piece in text_pieces(&text) {
                if piece.chars().any(|one| one != char::REPLACEMENT_CHARACTER) {
                    plain.insert(piece.to_owned());
                    plain.insert(piece.escape_debug().to_string());
                    plain.insert(quoted(piece));
                    plain.insert(go_quoted(piece));
                    plain.insert(go_json(piece));
                    plain.insert(go_quoted(&go_json(piece)));
                    plain.insert(foreign::one_line(piece, usize::MAX));
                    plain.insert(foreign::message(piece, usize::MAX));
                }
            }
            for piece in pieces(value) {
                base64.extend((0..3).map(|shift| encoded_at(piece, shift)));
                hexadecimal.insert(hex::encode(piece));
            }
        }
        Self { plain: automaton(&plain), base64: automaton(&base64), hex: automaton(&hexadecimal) }
    }

    /// The text with each value masked.
    pub fn mask(&self, text: &str) -> String {
        let found = self.find(text);
        let mut masked = String::with_capacity(text.len());
        let mut from = 0;
        for (start, end) in found {
            masked.push_str(text.get(from..start).unwrap_or_default());
            masked.push_str(MASK);
            from = end;
        }
        masked.push_str(text.get(from..).unwrap_or_default());
        masked
    }

    /// Masks the values in a text in place.
    pub fn mask_in(&self, text: &mut String) {
        if !self.find(text).is_empty() {
            *text = self.mask(text);
        }
    }

    /// Replaces a word that contains a value.
    pub fn mask_word(&self, word: &mut String) {
        if !self.find(word).is_empty() {
            MASKED_WORD.clone_into(word);
        }
    }

    /// The ranges of values, in order and without overlaps. Every end is the end of a character.
    fn find(&self, text: &str) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        if let Some(values) = &self.plain {
            search(values, text, &mut found);
        }
        if let Some(values) = &self.base64 {
            search(values, &text.replace('-', "+").replace('_', "/"), &mut found);
        }
        if let Some(values) = &self.hex {
            search(values, &text.to_ascii_lowercase(), &mut found);
        }
        found.sort_unstable();
        let mut apart: Vec<(usize, usize)> = Vec::with_capacity(found.len());
        for (start, end) in found {
            match apart.last_mut() {
                Some((_, last)) if is_within_gap(text, *last, start) => *last = end.max(*last),
                _ => apart.push((start, end)),
            }
        }
        apart
    }
}

/// Adds the ranges of values in a text, and joins those that overlap. One step for each byte of the
/// text, for any number of values; a few more before each [`CUT`].
fn search(values: &NFA, text: &str, found: &mut Vec<(usize, usize)>) {
    let Ok(first_state) = values.start_state(Anchored::No) else { return };
    let mut state = first_state;
    let first = found.len();
    let mut join = |mut start: usize, end: usize| {
        while found.len() > first
            && let Some((before, _)) = found.pop_if(|(_, until)| *until >= start)
        {
            start = start.min(before);
        }
        found.push((start, end));
    };
    for (at, byte) in text.bytes().enumerate() {
        let (before, rest) = text.as_bytes().split_at(at);
        if state != first_state && rest.starts_with(CUT) {
            let length = begun(values, first_state, before, state);
            if length >= CUT_VALUE_BYTES_MIN {
                join(at - length, at);
            }
        }
        state = values.next_state(Anchored::No, state, byte);
        if values.is_match(state) {
            // Of the values that end here, the first is the longest.
            let length = values.pattern_len(values.match_pattern(state, 0));
            join(at + 1 - length, at + 1);
        }
    }
}

/// How many bytes at the end of a text, which leads to `state`, are the beginning of a value: the
/// fewest that lead to the same state.
fn begun(values: &NFA, first_state: StateID, text: &[u8], state: StateID) -> usize {
    let leads = |length: usize| {
        let end = text.get(text.len() - length..).unwrap_or_default();
        let step = |state, byte: &u8| values.next_state(Anchored::No, state, *byte);
        end.iter().fold(first_state, step) == state
    };
    let mut enough = 1;
    while enough < text.len() && !leads(enough) {
        enough *= 2;
    }
    enough = enough.min(text.len());
    let mut too_few = enough / 2;
    while too_few + 1 < enough {
        let middle = usize::midpoint(too_few, enough);
        if leads(middle) {
            enough = middle;
        } else {
            too_few = middle;
        }
    }
    enough
}

/// Whether nothing but a few characters of base64 lie between the end of one piece and the next.
fn is_within_gap(text: &str, end: usize, start: usize) -> bool {
    start <= end
        || start - end <= GAP_MAX
            && text.get(end..start).is_some_and(|gap| {
                gap.bytes().all(|one| one.is_ascii_alphanumeric() || b"+/-_=".contains(&one))
            })
}

/// The automaton that finds these patterns; `None` if there are none, or if it cannot be built.
/// [`VALUES_BYTES_MAX`] is far below the size of the largest automaton.
fn automaton(patterns: &BTreeSet<String>) -> Option<NFA> {
    if patterns.is_empty() {
        return None;
    }
    let built = NFA::new(patterns);
    if let Err(error) = &built {
        tracing::error!(%error, "the host cannot search for the values of Secrets: it masks none of this form");
    }
    built.ok()
}

#[cfg(test)]
mod tests;
