//! Foreign text, from guests, objects and servers, in a form that is safe for terminals and text
//! logs.
//!
//! All output of such text goes through these functions. They replace a character that a reader
//! cannot see, that moves the cursor, or that changes the order of other characters by its code.

use std::fmt::{Display, Write as _};

/// The longest line in output, in bytes: twice the longest message of a condition.
pub const LINE_BYTES_MAX: usize = 64 << 10;

/// Characters that are invisible although Unicode counts them as letters, marks or symbols.
const INVISIBLE: [(char, char); 9] = [
    ('\u{34f}', '\u{34f}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{2800}', '\u{2800}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{e0100}', '\u{e01ef}'),
];

/// Whether a terminal shows a character in its place, and the character has no other effect.
///
/// Not visible are control and format characters, spaces other than U+0020, line separators, and
/// private or unassigned characters.
pub fn is_visible(c: char) -> bool {
    if c.is_ascii() {
        return matches!(c, ' '..='~');
    }
    if INVISIBLE.iter().any(|(first, last)| (*first..=*last).contains(&c)) {
        return false;
    }
    // `escape_debug` escapes by Unicode's categories. It keeps combining marks only after a letter,
    // so the character follows one here.
    let mut bytes = [0; 5];
    bytes[0] = b'a';
    let length = c.encode_utf8(&mut bytes[1..]).len();
    std::str::from_utf8(&bytes[..=length])
        .is_ok_and(|text| text.escape_debug().nth(1).is_some_and(|shown| shown == c))
}

/// Whether [`message`] without a limit returns the text unchanged.
pub fn is_message(text: &str) -> bool {
    if text.is_ascii() {
        return text.bytes().all(|byte| is_printable(byte) || matches!(byte, b'\n' | b'\t'));
    }
    text.chars().all(|c| is_visible(c) || matches!(c, '\n' | '\t'))
}

/// Whether a byte is a visible character of ASCII.
fn is_printable(byte: u8) -> bool {
    matches!(byte, b' '..=b'~')
}

/// Splits a text after its longest prefix of visible ASCII characters.
pub fn split_printable(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|byte| !is_printable(byte)).unwrap_or(text.len());
    text.split_at(end)
}

/// Returns text as one line, with every invisible character as its code (`\n`, `\u{1b}`). A text of
/// more than `bytes_max` bytes is cut, and three dots follow.
pub fn one_line(text: impl Display, bytes_max: usize) -> String {
    visible(text, bytes_max, &[])
}

/// Returns text as the message of a condition or Event: like [`one_line`], but newlines and tabs
/// stay.
pub fn message(text: impl Display, bytes_max: usize) -> String {
    visible(text, bytes_max, &['\n', '\t'])
}

fn visible(text: impl Display, bytes_max: usize, kept: &'static [char]) -> String {
    let mut visible = Visible { text: String::new(), bytes_max, kept };
    // The only error is that the limit is reached.
    if write!(visible, "{text}").is_err() {
        visible.text.push_str("...");
    }
    visible.text
}

/// A writer of visible text that fails when its limit is reached.
struct Visible {
    text: String,
    bytes_max: usize,
    kept: &'static [char],
}

impl Visible {
    /// Adds visible ASCII characters up to the limit.
    fn push_printable(&mut self, text: &str) -> std::fmt::Result {
        let room = self.bytes_max.saturating_sub(self.text.len());
        if let Some(fitting) = text.get(..room).filter(|_| room < text.len()) {
            self.text.push_str(fitting);
            return Err(std::fmt::Error);
        }
        self.text.push_str(text);
        Ok(())
    }

    fn push(&mut self, c: char) -> std::fmt::Result {
        let before = self.text.len();
        match c {
            _ if is_visible(c) || self.kept.contains(&c) => self.text.push(c),
            '\n' => self.text.push_str("\\n"),
            '\r' => self.text.push_str("\\r"),
            '\t' => self.text.push_str("\\t"),
            _ => self.text.extend(c.escape_unicode()),
        }
        if self.text.len() > self.bytes_max {
            self.text.truncate(before);
            return Err(std::fmt::Error);
        }
        Ok(())
    }
}

impl std::fmt::Write for Visible {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let mut rest = text;
        loop {
            // Nearly all text is printable ASCII, so whole pieces are copied.
            let (printable, behind) = split_printable(rest);
            self.push_printable(printable)?;
            let mut characters = behind.chars();
            let Some(c) = characters.next() else { return Ok(()) };
            self.push(c)?;
            rest = characters.as_str();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visible_text_is_unchanged() {
        for text in
            ["", "Deployment web/a: 3 of 5", "größer, 表, हिन्दी, e\u{301}, ✓", r"C:\n \u{1b}"]
        {
            assert_eq!(one_line(text, 100), text);
        }
    }

    #[test]
    fn characters_that_move_hide_or_reorder_are_shown_as_codes() {
        for (text, shown) in [
            ("a\nb\rc\td", r"a\nb\rc\td"),
            ("\u{1b}[2J\u{1b}]52;c;eA==\u{7}", r"\u{1b}[2J\u{1b}]52;c;eA==\u{7}"),
            ("\u{1b}]8;;https://a\u{1b}\\b", r"\u{1b}]8;;https://a\u{1b}\b"),
            ("\u{9b}2J\u{9d}0;x\u{9c}", r"\u{9b}2J\u{9d}0;x\u{9c}"),
            ("\0\u{8}\u{7f}", r"\u{0}\u{8}\u{7f}"),
            ("\u{85}\u{2028}\u{2029}\u{b}\u{c}", r"\u{85}\u{2028}\u{2029}\u{b}\u{c}"),
            ("\u{a0}\u{2003}\u{3000}", r"\u{a0}\u{2003}\u{3000}"),
            ("\u{e000}\u{10ffff}", r"\u{e000}\u{10ffff}"),
        ] {
            assert_eq!(one_line(text, 100), shown);
        }
        let format = ('\u{202a}'..='\u{202e}').chain('\u{2066}'..='\u{2069}').chain([
            '\u{61c}',
            '\u{200b}',
            '\u{200c}',
            '\u{200d}',
            '\u{200e}',
            '\u{200f}',
            '\u{2060}',
            '\u{feff}',
            '\u{ad}',
            '\u{fff9}',
            '\u{e0001}',
            '\u{e0041}',
            '\u{fe0f}',
            '\u{3164}',
            '\u{2800}',
            '\u{34f}',
        ]);
        for c in format {
            assert!(!is_visible(c), "{c:?}");
            assert_eq!(one_line(c, 100), c.escape_unicode().to_string());
        }
    }

    #[test]
    fn message_keeps_newlines_and_tabs_only() {
        let text = "first\n\tsecond\r\u{1b}[2J\u{202e}\u{85}";
        assert_eq!(message(text, 100), "first\n\tsecond\\r\\u{1b}[2J\\u{202e}\\u{85}");
        assert_eq!(message("abcd", 3), "abc...");
    }

    #[test]
    fn text_copied_in_pieces_equals_text_copied_by_character() {
        let by_characters = |text: &str, bytes_max: usize| {
            let mut visible = Visible { text: String::new(), bytes_max, kept: &['\n', '\t'] };
            let end = if text.chars().all(|c| visible.push(c).is_ok()) { "" } else { "..." };
            visible.text + end
        };
        for text in ["", "abc", "a\nb\tc", "ab\u{1b}[2Jcd", "größe ✓ \u{202e}x", "\u{7f}~ \r", "é"]
        {
            for bytes_max in 0..24 {
                assert_eq!(message(text, bytes_max), by_characters(text, bytes_max), "{text:?}");
            }
            assert_eq!(is_message(text), message(text, usize::MAX) == text, "{text:?}");
        }
    }

    #[test]
    fn long_text_is_cut_and_never_within_a_code() {
        assert_eq!(one_line("abc", 3), "abc");
        assert_eq!(one_line("abcd", 3), "abc...");
        assert_eq!(one_line("aé", 2), "a...");
        assert_eq!(one_line("a\u{1b}b", 6), "a...");
        assert_eq!(one_line("\u{1b}".repeat(1 << 20), LINE_BYTES_MAX).len() / 1000, 65);
    }
}
