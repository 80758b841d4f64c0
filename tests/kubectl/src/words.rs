//! A command line as words.

/// Splits at spaces that are not in single quotes.
pub fn words(line: &str) -> Vec<String> {
    let (mut all, mut word, mut quoted, mut begun) = (Vec::new(), String::new(), false, false);
    for one in line.chars() {
        match one {
            '\'' => {
                quoted = !quoted;
                begun = true;
            }
            ' ' if !quoted => {
                if begun {
                    all.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            one => {
                word.push(one);
                begun = true;
            }
        }
    }
    if begun {
        all.push(word);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_spaces_and_are_gone() {
        assert_eq!(
            words("patch cm  a -p '{\"a\": 1}' ''"),
            ["patch", "cm", "a", "-p", "{\"a\": 1}", ""]
        );
    }
}
