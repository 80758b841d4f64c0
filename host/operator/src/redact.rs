//! Finding the bytes of granted Secrets in texts, and masking them.
//!
//! A text is searched for each value as it is, in base64 (both alphabets, also as a part of a
//! longer base64 text) and in hexadecimal digits. What a guest does to a value on purpose,
//! reversing or splitting it, is not found: the Module lets that guest write the bytes anyway.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use aho_corasick::Anchored;
use aho_corasick::automaton::{Automaton as _, StateID};
use aho_corasick::nfa::contiguous::NFA;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use innkeeper_core::foreign;

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

/// What the host writes where it cut a text.
const CUT: &[u8] = b"...";

/// Shorter beginnings of a value, in bytes, are left before [`CUT`]: many words begin so.
const CUT_VALUE_BYTES_MIN: usize = 4;

/// What lies between two pieces that were found, in bytes, is part of the value: a character of
/// base64 holds bits of both neighbours.
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
            // What is not text is written as replacement characters, which say nothing.
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
/// however many values there are and however they overlap; a few more before each [`CUT`].
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

/// How many bytes at the end of a text, which leads to `state`, begin a value: the fewest that lead
/// to the same state.
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

/// Where the pieces of a value of so many bytes begin and end. None is short: the last one has what
/// is left as well.
fn ranges(length: usize) -> impl Iterator<Item = (usize, usize)> {
    let whole = (length / PIECE_BYTES).max(1);
    (0..whole).map(move |index| {
        let start = index * PIECE_BYTES;
        (start, if index + 1 == whole { length } else { start + PIECE_BYTES })
    })
}

/// The pieces of a value.
fn pieces(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    ranges(value.len()).filter_map(|(start, end)| value.get(start..end))
}

/// The pieces of a value that is text, cut between characters.
fn text_pieces(value: &str) -> impl Iterator<Item = &str> {
    ranges(value.len()).filter_map(|(start, end)| {
        value.get(value.floor_char_boundary(start)..value.floor_char_boundary(end))
    })
}

/// The characters of base64 that depend on a piece alone, if so many bytes precede it in its group
/// of three.
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

/// As the API server quotes it in an error (`%q` of Go).
fn go_quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    for c in text.chars() {
        // Writing into a String cannot fail.
        let _ = match c {
            '"' | '\\' => write!(quoted, "\\{c}"),
            '\n' => write!(quoted, "\\n"),
            '\r' => write!(quoted, "\\r"),
            '\t' => write!(quoted, "\\t"),
            '\x07' => write!(quoted, "\\a"),
            '\x08' => write!(quoted, "\\b"),
            '\x0b' => write!(quoted, "\\v"),
            '\x0c' => write!(quoted, "\\f"),
            c if foreign::is_visible(c) => write!(quoted, "{c}"),
            c if c.is_ascii() => write!(quoted, "\\x{:02x}", u32::from(c)),
            c if u32::from(c) <= 0xffff => write!(quoted, "\\u{:04x}", u32::from(c)),
            c => write!(quoted, "\\U{:08x}", u32::from(c)),
        };
    }
    quoted
}

/// As it stands within JSON that the API server quotes in an error: Go escapes what HTML could take
/// for a tag.
fn go_json(text: &str) -> String {
    let mut json = quoted(text);
    for (character, escape) in [
        ('<', "\\u003c"),
        ('>', "\\u003e"),
        ('&', "\\u0026"),
        ('\u{2028}', "\\u2028"),
        ('\u{2029}', "\\u2029"),
    ] {
        json = json.replace(character, escape);
    }
    json
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
    fn value_is_masked_as_the_api_server_quotes_it() {
        let redactor = redactor(b"postgres://app:p<a>ss@db/x?a=b&c=d\x01'\"\xc2\xa0e\x7f");
        for form in [
            r#"postgres://app:p<a>ss@db/x?a=b&c=d\x01'\"\u00a0e\x7f"#,
            "postgres://app:p\\u003ca\\u003ess@db/x?a=b\\u0026c=d\\u0001'\\\"\u{a0}e\x7f",
            r#"postgres://app:p\\u003ca\\u003ess@db/x?a=b\\u0026c=d\\u0001'\\\"\u00a0e\x7f"#,
        ] {
            let masked = redactor.mask(&format!("Invalid value: {form}: field is immutable"));
            assert_eq!(masked, "Invalid value: [redacted]: field is immutable", "{form}");
        }
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

    /// No text shows four bytes of a value where it was cut, or more of it elsewhere.
    fn assert_masked(redactor: &Redactor, value: &str, text: &str) {
        let masked = redactor.mask(text);
        let shown = foreign::one_line(value, usize::MAX);
        for (at, _) in shown.char_indices() {
            let part = shown.get(at..).unwrap();
            let part = part.get(..part.ceil_char_boundary(CUT_VALUE_BYTES_MIN)).unwrap();
            let is_shown = part.len() >= CUT_VALUE_BYTES_MIN && masked.contains(part);
            assert!(!is_shown, "{part:?} of {text:?}: {masked:?}");
        }
    }

    #[test]
    fn long_text_of_wide_characters_is_masked_in_every_form() {
        let value = "吾輩は猫である。名前はまだ無い。".repeat(9);
        let redactor = redactor(value.as_bytes());
        for form in [value.clone(), STANDARD.encode(&value), hex::encode(&value)] {
            let masked = redactor.mask(&form);
            // The last character of base64 may hold bits of what follows.
            assert!(masked.starts_with(MASK) && masked.len() <= MASK.len() + 4, "{masked}");
        }
    }

    #[test]
    fn long_value_that_is_partly_text_is_masked_as_it_is_shown() {
        let mut value = "ü".repeat(100).into_bytes();
        value.push(0xff);
        value.extend("ö".repeat(100).into_bytes());
        assert_eq!(redactor(&value).mask(&String::from_utf8_lossy(&value)), MASK);
    }

    #[test]
    fn value_is_masked_after_it_was_made_visible() {
        let value = "line \"one\"\nline\u{200b}\ttwo";
        let redactor = redactor(value.as_bytes());
        for shown in [foreign::one_line(value, 999), foreign::message(value, 999)] {
            assert_eq!(redactor.mask(&format!("<{shown}>")), "<[redacted]>");
        }
    }

    #[test]
    fn beginning_of_a_value_is_masked_where_the_text_was_cut() {
        let long = "0123456789 \u{200b}abcdefghijklmnopqrstuvwxyz, ".repeat(9);
        for value in ["correct \"horse\"\n🐴 battery", &long] {
            let redactor = redactor(value.as_bytes());
            for bytes_max in 0..=value.len() + 9 {
                let cut = foreign::one_line(format_args!("at={value}"), bytes_max);
                assert_masked(&redactor, value, &format!("name `{cut}` is not a name"));
            }
            let encoded = STANDARD.encode(value);
            let cut = foreign::one_line(&encoded, 20);
            assert_eq!(redactor.mask(&cut), "[redacted]...");
        }
    }

    #[test]
    fn beginning_of_a_value_stays_in_a_text_that_was_not_cut() {
        let redactor = redactor(b"https://user:password@example.com");
        for text in ["see https://user.example.com", "htt...", "it waits..."] {
            assert_eq!(redactor.mask(text), text);
        }
        assert_eq!(redactor.mask("see https://us... for it"), "see [redacted]... for it");
    }

    #[test]
    fn refusal_that_cuts_a_value_shows_nothing_of_it() {
        use innkeeper_core::host_names::{self, Grants};
        use innkeeper_core::names;
        use serde_json::json;

        let value = "SESAME \"4711\"\nPHRASE; 0815";
        let redactor = redactor(value.as_bytes());
        for padding in 200..330 {
            let name = format!("innkeeper.dev/{}{value}", "x".repeat(padding));
            let object = json!({"metadata": {"labels": {&name: "x"}}});
            for refusal in [
                names::check_reference("v1", "ConfigMap", "", &name).unwrap_err(),
                names::check_metadata(&object["metadata"]).unwrap_err(),
                host_names::check(&object, false, Grants::default()).unwrap_err(),
            ] {
                assert_masked(&redactor, value, &refusal);
            }
        }
    }

    #[test]
    fn dots_that_begin_a_value_everywhere_take_few_steps() {
        let redactor = redactor(&[b'.'; 100]);
        assert_eq!(redactor.mask(&".".repeat(1 << 16)), MASK);
    }
}
