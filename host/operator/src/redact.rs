//! Finding the bytes of granted Secrets in texts, and masking them.
//!
//! A text is searched for each value as it is, in base64 (both alphabets, also as a part of a longer
//! base64 text) and in hexadecimal digits. What a guest does to a value on purpose, reversing or
//! splitting it, is not found: the Module lets that guest write the bytes anyway.

use std::collections::BTreeSet;

use aho_corasick::Anchored;
use aho_corasick::automaton::Automaton as _;
use aho_corasick::nfa::contiguous::NFA;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

/// What stands for a value in a text.
pub const MASK: &str = "[redacted]";

/// What stands for a condition's type, or a reason, in which a value was found: these are words.
pub const MASKED_WORD: &str = "Redacted";

/// Shorter values, in bytes, are not searched for: they would be found in any text.
pub const VALUE_BYTES_MIN: usize = 8;

/// All values of one run have at most so many bytes together.
pub const VALUES_BYTES_MAX: usize = 128 << 10;

/// Longer values are searched for in pieces of so many bytes.
const PIECE_BYTES: usize = 64;

/// What lies between two pieces that were found, in bytes, is part of the value: a character of base64
/// holds bits of both neighbours.
const GAP_MAX: usize = 4;

/// Masks the values of Secrets in texts.
#[derive(Default)]
pub struct Redactor {
    /// As they are, and escaped as in a quotation.
    plain: Option<NFA>,
    /// In base64 of the standard alphabet.
    base64: Option<NFA>,
    /// In lower-case hexadecimal digits.
    hex: Option<NFA>,
}

impl Redactor {
    /// Masks these values.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut plain = BTreeSet::new();
        let mut base64 = BTreeSet::new();
        let mut hexadecimal = BTreeSet::new();
        for value in values {
            // A guest that trims a line's end has the value all the same.
            let value = value.trim_ascii();
            if value.len() < VALUE_BYTES_MIN {
                continue;
            }
            for piece in pieces(value) {
                let text = String::from_utf8_lossy(piece).into_owned();
                // What is not text is written as replacement characters, which say nothing.
                if text.chars().any(|one| one != char::REPLACEMENT_CHARACTER) {
                    plain.insert(text.escape_debug().to_string());
                    plain.insert(quoted(&text));
                    plain.insert(text);
                }
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

    /// Masks the values in a text where it stands.
    pub fn mask_in(&self, text: &mut String) {
        if !self.find(text).is_empty() {
            *text = self.mask(text);
        }
    }

    /// Replaces a word that holds a value.
    pub fn mask_word(&self, word: &mut String) {
        if !self.find(word).is_empty() {
            MASKED_WORD.clone_into(word);
        }
    }

    /// Where values are, in order and apart. Every end is that of a character.
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

/// The places of values in a text, those that overlap joined. One step for each byte of the text,
/// however many values there are and however they overlap.
fn search(values: &NFA, text: &str, found: &mut Vec<(usize, usize)>) {
    let Ok(mut state) = values.start_state(Anchored::No) else { return };
    let first = found.len();
    for (at, byte) in text.bytes().enumerate() {
        state = values.next_state(Anchored::No, state, byte);
        if !values.is_match(state) {
            continue;
        }
        // Of the values that end here, the first is the longest.
        let length = values.pattern_len(values.match_pattern(state, 0));
        let (mut start, end) = (at + 1 - length, at + 1);
        while found.len() > first
            && let Some((before, _)) = found.pop_if(|(_, until)| *until >= start)
        {
            start = start.min(before);
        }
        found.push((start, end));
    }
}

/// Whether nothing but a few characters of base64 lie between the end of one piece and the next.
fn is_within_gap(text: &str, end: usize, start: usize) -> bool {
    start <= end
        || start - end <= GAP_MAX
            && text.get(end..start).is_some_and(|gap| {
                gap.bytes().all(|one| one.is_ascii_alphanumeric() || b"+/-_=".contains(&one))
            })
}

/// The pieces of a value, of which none is short.
fn pieces(value: &[u8]) -> Vec<&[u8]> {
    let whole = value.len() / PIECE_BYTES;
    if whole < 2 {
        return vec![value];
    }
    // The last one has what is left as well.
    (0..whole)
        .filter_map(|index| {
            let start = index * PIECE_BYTES;
            let end = if index + 1 == whole { value.len() } else { start + PIECE_BYTES };
            value.get(start..end)
        })
        .collect()
}

/// The characters of base64 that depend on a piece alone, if so many bytes precede it in its group of three.
fn encoded_at(piece: &[u8], shift: usize) -> String {
    let mut bytes = vec![0; shift];
    bytes.extend_from_slice(piece);
    let encoded = STANDARD_NO_PAD.encode(&bytes);
    // The first characters hold bits of what precedes, the last one may hold bits of what follows.
    let first = (shift * 8).div_ceil(6);
    let last = bytes.len() * 8 / 6;
    encoded.get(first..last).unwrap_or_default().to_owned()
}

/// As it stands within a JSON string.
fn quoted(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.trim_start_matches('"').strip_suffix('"').unwrap_or(&quoted).to_owned()
}

/// `None` if there is nothing to search for, or it cannot be: [`VALUES_BYTES_MAX`] is far below
/// what an automaton can hold.
fn automaton(patterns: &BTreeSet<String>) -> Option<NFA> {
    if patterns.is_empty() {
        return None;
    }
    let built = NFA::new(patterns);
    if let Err(error) = &built {
        tracing::error!(%error, "values of Secrets cannot be searched for");
    }
    built.ok()
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};

    use super::*;

    const VALUE: &[u8] = b"correct horse\xf0\x9f\x90\xb4?>battery";

    fn redactor(value: &[u8]) -> Redactor {
        Redactor::new([value])
    }

    #[test]
    fn value_is_masked_in_every_form() {
        let redactor = redactor(VALUE);
        let text = String::from_utf8(VALUE.to_vec()).unwrap();
        for form in [
            text.clone(),
            STANDARD.encode(VALUE),
            STANDARD_NO_PAD.encode(VALUE),
            URL_SAFE.encode(VALUE),
            URL_SAFE_NO_PAD.encode(VALUE),
            hex::encode(VALUE),
            hex::encode(VALUE).to_uppercase(),
        ] {
            let masked = redactor.mask(&format!("it is {form} here"));
            assert!(
                masked.starts_with("it is [redacted]") && masked.ends_with(" here"),
                "{masked}"
            );
            let least = form.get(..6).unwrap();
            assert!(!masked.contains(least), "{form}: {masked}");
        }
    }

    #[test]
    fn value_is_masked_within_longer_base64() {
        let redactor = redactor(b"hunter2hunter2");
        for user in ["u", "us", "use", "user"] {
            let header = STANDARD.encode(format!("{user}:hunter2hunter2!!"));
            let masked = redactor.mask(&header);
            assert!(masked.contains(MASK) && masked.len() < header.len(), "{header}: {masked}");
        }
    }

    #[test]
    fn value_is_masked_when_it_is_quoted() {
        let redactor = redactor(b"line \"one\"\nline two");
        let masked = redactor.mask(r#"invalid value "line \"one\"\nline two": no"#);
        assert_eq!(masked, "invalid value \"[redacted]\": no");
    }

    #[test]
    fn line_end_of_a_value_does_not_hide_it() {
        assert_eq!(redactor(b"hunter2hunter2\n").mask("<hunter2hunter2>"), "<[redacted]>");
    }

    #[test]
    fn long_value_is_masked_whole_and_in_parts() {
        let value: Vec<u8> =
            (0..20_000_u32).map(|n| b'a' + u8::try_from(n * n % 23).unwrap()).collect();
        let redactor = redactor(&value);
        let text = String::from_utf8(value.clone()).unwrap();
        assert_eq!(redactor.mask(&text), MASK);
        assert_eq!(redactor.mask(&hex::encode(&value)), MASK);
        let part = redactor.mask(text.get(5_000..5_500).unwrap());
        assert!(part.contains(MASK) && part.len() < 2 * PIECE_BYTES + MASK.len(), "{part}");
        let encoded = redactor.mask(&STANDARD.encode(&value));
        assert!(encoded.len() < 20, "{encoded}");
    }

    #[test]
    fn short_value_is_left_and_a_text_without_values_stays() {
        assert_eq!(redactor(b"secret7").mask("secret7"), "secret7");
        let text = "nothing of it: ünïcode, \u{1f434}";
        assert_eq!(redactor(VALUE).mask(text), text);
        assert_eq!(Redactor::default().mask(text), text);
    }

    #[test]
    fn overlapping_values_are_masked_whole() {
        let redactor = Redactor::new([&b"abcdefgh"[..], b"efghijkl", b"abcdefghijklmn"]);
        assert_eq!(redactor.mask("-abcdefghijkl-"), "-[redacted]-");
        assert_eq!(redactor.mask("abcdefghijklmnop"), "[redacted]op");
    }

    #[test]
    fn value_that_is_no_text_is_masked_in_its_encodings() {
        let value: Vec<u8> = (0x80..0xff).collect();
        let redactor = redactor(&value);
        assert_eq!(redactor.mask(&hex::encode(&value)), MASK);
        assert_eq!(redactor.mask("\u{fffd}\u{fffd}\u{fffd}"), "\u{fffd}\u{fffd}\u{fffd}");
    }

    #[test]
    fn word_that_holds_a_value_is_replaced() {
        let mut word = "WithHunter2Hunter2".to_owned();
        redactor(b"Hunter2Hunter2").mask_word(&mut word);
        assert_eq!(word, MASKED_WORD);
    }

    #[test]
    fn values_that_all_end_at_every_place_take_one_step_for_each_byte() {
        // Compared one by one these are 100 million matches.
        let values: Vec<Vec<u8>> = (8..127).map(|length| vec![b'a'; length]).collect();
        let redactor = Redactor::new(values.iter().map(Vec::as_slice));
        assert_eq!(redactor.mask(&"a".repeat(1 << 20)), MASK);
        let all = vec![b'a'; VALUES_BYTES_MAX];
        assert_eq!(Redactor::new([all.as_slice()]).mask(&"a".repeat(256 << 10)), MASK);
    }
}
