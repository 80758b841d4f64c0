/// Returns a text of another program as one line for a message: without white space around it, with
/// spaces in place of line breaks, other control characters and marks that change the direction of
/// text, and cut to `chars_max` characters.
///
/// Use it for what a guest reads from a status, such as the reason of a waiting container or a
/// termination message: their authors decide about length and content.
///
/// ```
/// use innkeeper_sdk::one_line;
///
/// assert_eq!(one_line("cannot pull:\n  not found\n", 80), "cannot pull:   not found");
/// assert_eq!(one_line("a very long text", 6), "a very");
/// ```
pub fn one_line(text: &str, chars_max: usize) -> String {
    let line = text.trim().chars().map(|one| if is_invisible(one) { ' ' } else { one });
    line.take(chars_max).collect()
}

/// Whether a character breaks or turns around the line that has it, or is not shown.
fn is_invisible(one: char) -> bool {
    one.is_control()
        || matches!(
            one,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_has_no_control_characters_and_no_space_around_it() {
        assert_eq!(one_line("\n a\tb\r\nc\u{7}d\u{85}e \n", 100), "a b  c d e");
        assert_eq!(one_line("a\u{2028}b\u{2029}c\u{202e}d\u{2066}e\u{200f}f", 100), "a b c d e f");
        assert_eq!(one_line(" \n ", 100), "");
    }

    #[test]
    fn one_line_counts_characters_and_not_bytes() {
        assert_eq!(one_line("snow ☃☃☃", 6), "snow ☃");
        assert_eq!(one_line("☃", 0), "");
        assert_eq!(one_line(&"R\n".repeat(50_000), 300).chars().count(), 300);
    }
}
