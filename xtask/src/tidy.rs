//! `cargo xtask tidy`: the rules of the repository that no compiler holds.

mod arrow;
mod exceptions;
mod files;
mod imports;
mod output;
mod places;
mod promises;
mod prose;
mod texts;
mod words;

use anyhow::{Result, bail};

pub(crate) use self::exceptions::Update;
use self::exceptions::{Exceptions, Found, Rule};
use self::files::File;
use crate::progress::say;

/// Prints all that breaks a rule.
///
/// # Errors
/// The violations, one line each.
pub(crate) fn run() -> Result<()> {
    let problems = problems()?;
    if problems.is_empty() {
        say("tidy: no rule is broken");
        return Ok(());
    }
    bail!("{} lines of problems:\n  {}", problems.len(), problems.join("\n  "));
}

/// Writes the exceptions that are left.
///
/// # Errors
/// If a file cannot be read or written.
pub(crate) fn update(update: Update) -> Result<()> {
    let found = found(&files::all()?)?;
    Exceptions::read()?.update(&found, update).write()
}

/// All that is wrong, one line each, saying where and what.
fn problems() -> Result<Vec<String>> {
    let files = files::all()?;
    let mut problems = arrow::problems()?;
    problems.extend(output::problems()?);
    problems.extend(places::problems()?);
    problems.extend(promises::problems()?);
    problems.extend(texts::problems(&files));
    problems.extend(Exceptions::read()?.compare(&found(&files)?));
    Ok(problems)
}

/// What breaks the rules that have exceptions.
fn found(files: &[File]) -> Result<Found> {
    let mut found = Found::default();
    imports::add_to(&mut found)?;
    let (words, prose) = (words::Words::of_project()?, prose::Prose::new()?);
    for file in files {
        let Ok(text) = std::str::from_utf8(&file.bytes) else { continue };
        let name = &file.name;
        found.add(Rule::Length, name, texts::too_long(name, text));
        if ["rs", "md"].contains(&files::extension(name)) {
            found.add(Rule::Width, name, prose.wide_lines(name, text));
        }
        if words::are_checked_in(name, text) {
            found.add(Rule::Words, name, words.find(name, text));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    #[test]
    fn repository_breaks_no_rule() {
        let problems = super::problems().unwrap();
        assert!(problems.is_empty(), "\n{}", problems.join("\n"));
    }
}
