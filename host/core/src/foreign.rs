//! Text that guests, objects and servers gave, made fit for terminals and text logs.
//!
//! Every printer shows such text by these functions: a character that a reader cannot see, that
//! moves the cursor, or that changes the order of other characters is written as its code.

use std::fmt::{Display, Write as _};

/// The longest line that is printed, in bytes: twice the longest message of a condition.
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

/// Whether a terminal shows a character in the place where it stands, and does nothing else.
///
/// Control and format characters, all spaces but the plain one, line separators, and characters
/// that are private or not assigned are not visible.
pub fn is_visible(c: char) -> bool {
    if c.is_ascii() {
        return matches!(c, ' '..='~');
    }
    if INVISIBLE.iter().any(|(first, last)| (*first..=*last).contains(&c)) {
        return false;
    }
    // Behind a letter the standard library leaves combining marks, and escapes what it cannot
    // print by Unicode's categories.
    let mut bytes = [0; 5];
    bytes[0] = b'a';
    let length = c.encode_utf8(&mut bytes[1..]).len();
    std::str::from_utf8(&bytes[..=length])
        .is_ok_and(|text| text.escape_debug().nth(1).is_some_and(|shown| shown == c))
}

/// Text as one line of at most `bytes_max` bytes and three dots, with every invisible character
/// as its code (`\n`, `\u{1b}`).
pub fn one_line(text: impl Display, bytes_max: usize) -> String {
    visible(text, bytes_max, &[])
}

/// Text as a message in an object: like [`one_line`], but newlines and tabs stay.
pub fn message(text: impl Display, bytes_max: usize) -> String {
    visible(text, bytes_max, &['\n', '\t'])
}

fn visible(text: impl Display, bytes_max: usize, kept: &'static [char]) -> String {
    let mut visible = Visible { text: String::new(), bytes_max, kept };
    // An error is the end of the room; writing into a String cannot fail.
    if write!(visible, "{text}").is_err() {
        visible.text.push_str("...");
    }
    visible.text
}

/// Visible text in the making: it takes no more than its bound.
struct Visible {
    text: String,
    bytes_max: usize,
    kept: &'static [char],
}

impl std::fmt::Write for Visible {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        for c in text.chars() {
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
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visible_text_is_shown_as_it_is() {
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
    fn a_message_keeps_its_lines_and_nothing_else_that_is_not_visible() {
        let text = "first\n\tsecond\r\u{1b}[2J\u{202e}\u{85}";
        assert_eq!(message(text, 100), "first\n\tsecond\\r\\u{1b}[2J\\u{202e}\\u{85}");
        assert_eq!(message("abcd", 3), "abc...");
    }

    #[test]
    fn a_long_text_is_cut_and_never_within_a_code() {
        assert_eq!(one_line("abc", 3), "abc");
        assert_eq!(one_line("abcd", 3), "abc...");
        assert_eq!(one_line("aé", 2), "a...");
        assert_eq!(one_line("a\u{1b}b", 6), "a...");
        assert_eq!(one_line("\u{1b}".repeat(1 << 20), LINE_BYTES_MAX).len() / 1000, 65);
    }
}
