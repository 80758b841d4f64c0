//! Sections as Markdown: a heading, a text, and a table of fields.

use std::fmt::Write as _;

use serde_json::Value;

use super::sections::{Field, Section};

/// The widest line of prose.
const WIDTH: usize = 100;

/// The longest example in a table, in characters. The reader finds a longer one in the whole
/// example of the page.
const EXAMPLE_CHARS_MAX: usize = 60;

/// How a page writes a document.
#[derive(Clone, Copy)]
pub(super) struct Style<'a> {
    /// Whether the host writes the document: readers then ask what is always there, not for
    /// defaults.
    pub(super) written_by_host: bool,
    /// Whether examples are YAML instead of JSON.
    pub(super) yaml: bool,
    /// The heading above the whole example.
    pub(super) example_heading: &'a str,
}

/// Writes a section.
pub(super) fn section(section: &Section, style: Style<'_>) -> String {
    let mut text = format!("## {}\n\n", section.title);
    if !section.description.is_empty() {
        let _ = write!(text, "{}\n\n", wrap(&section.description));
    }
    if !section.rules.is_empty() {
        text.push_str("The API server checks:\n\n");
        for rule in &section.rules {
            let _ = writeln!(text, "{}", indent(&wrap(&format!("- {rule}"))));
        }
        text.push('\n');
    }
    let third = if style.written_by_host { "present" } else { "default" };
    let _ = writeln!(text, "| field | type and limits | {third} | description | example |");
    text.push_str("|---|---|---|---|---|\n");
    for field in &section.fields {
        let _ = writeln!(text, "{}", row(field, style));
    }
    text
}

/// The anchor that GitHub gives a heading.
pub(super) fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

fn link(title: &str) -> String {
    format!("[{title}](#{})", anchor(title))
}

fn row(field: &Field, style: Style<'_>) -> String {
    let type_name = match &field.section {
        Some(title) if field.is_list => format!("list of {}", link(title)),
        Some(title) => link(title),
        None => field.type_name.clone(),
    };
    let mut type_and_limits = vec![type_name];
    type_and_limits.extend(field.limits.iter().cloned());
    let third = match (&field.default, style.written_by_host) {
        (_, true) if field.required => "always".to_owned(),
        (_, true) => "optional".to_owned(),
        (_, false) if field.required => "**required**".to_owned(),
        (Some(default), false) => code_if_word(default),
        (None, false) if field.section.is_some() => "empty".to_owned(),
        (None, false) => "none".to_owned(),
    };
    let mut description = field.description.clone();
    for (value, meaning) in &field.values {
        let _ = write!(description, "<br>`{value}`: {meaning}");
    }
    let cells = [format!("`{}`", field.name), type_and_limits.join("; "), third, description];
    let cells: Vec<String> = cells.iter().map(|cell| escape(cell)).collect();
    format!("| {} | {} |", cells.join(" | "), escape(&example(field, style)))
}

/// A default as code, unless it is a phrase, or code already.
fn code_if_word(default: &str) -> String {
    if default.contains([' ', '`']) || default == "never" || default == "none" {
        default.to_owned()
    } else {
        format!("`{default}`")
    }
}

/// The example of a field: the section of its fields has theirs.
fn example(field: &Field, style: Style<'_>) -> String {
    if let Some(title) = &field.section {
        return format!("[its fields](#{})", anchor(title));
    }
    let text = if style.yaml { flow(&field.example) } else { field.example.to_string() };
    if text.chars().count() > EXAMPLE_CHARS_MAX {
        return format!("[above](#{})", anchor(style.example_heading));
    }
    format!("`{text}`")
}

/// A value in the flow style of YAML.
fn flow(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", "))
        }
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| format!("{name}: {}", flow(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        scalar => serde_yaml_ng::to_string(scalar)
            .map_or_else(|_| scalar.to_string(), |text| text.trim_end().to_owned()),
    }
}

/// Escapes what ends a cell of a table, and `<` of a placeholder.
fn escape(cell: &str) -> String {
    let mut text = String::new();
    let mut in_code = false;
    for (index, c) in cell.char_indices() {
        in_code ^= c == '`';
        match c {
            '|' => text.push_str("\\|"),
            '<' if !in_code && !cell[index..].starts_with("<br>") => text.push_str("&lt;"),
            c => text.push(c),
        }
    }
    text
}

/// Wraps prose.
pub(super) fn wrap(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last().map_or(0, |line| line.chars().count());
        if line > 0 && line + 1 + word.chars().count() > WIDTH - 2 {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

/// Indents all lines but the first, as those of an item.
fn indent(text: &str) -> String {
    text.replace('\n', "\n  ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn anchor_is_that_of_the_rendered_heading() {
        assert_eq!(anchor("spec.selector.matchExpressions[]"), "specselectormatchexpressions");
        assert_eq!(anchor("Example of observed-list"), "example-of-observed-list");
    }

    #[test]
    fn default_is_code_once_and_a_phrase_is_none() {
        for (default, expected) in [
            ("All", "`All`"),
            ("`All`", "`All`"),
            ("the kind of `primary`", "the kind of `primary`"),
            ("never", "never"),
        ] {
            assert_eq!(code_if_word(default), expected);
        }
    }

    #[test]
    fn cells_escape_bars_and_angle_brackets_outside_code() {
        assert_eq!(escape("a|b <x><br>`<y>`"), "a\\|b &lt;x><br>`<y>`");
    }

    #[test]
    fn flow_quotes_only_texts_that_yaml_would_read_otherwise() {
        let value = json!({"a": ["x", "True", true, 1]});
        assert_eq!(flow(&value), "{a: [x, 'True', true, 1]}");
    }

    #[test]
    fn prose_wraps_within_the_width() {
        let text = wrap(&"word ".repeat(50));
        assert!(text.lines().all(|line| line.len() <= WIDTH) && text.lines().count() == 3);
    }
}
