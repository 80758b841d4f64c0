//! `cargo xtask tidy`: the rules of the repository that no compiler holds.

mod arrow;
mod output;
mod promises;
mod texts;

use anyhow::{Result, bail};

use crate::progress::say;

/// Says all that is wrong.
pub(crate) fn run() -> Result<()> {
    let problems = problems()?;
    if problems.is_empty() {
        say("tidy: nothing to complain about");
        return Ok(());
    }
    bail!("{} things are not tidy:\n  {}", problems.len(), problems.join("\n  "));
}

/// All that is wrong, one line each, saying where and what.
fn problems() -> Result<Vec<String>> {
    let mut problems = arrow::problems()?;
    problems.extend(output::problems()?);
    problems.extend(promises::problems()?);
    problems.extend(texts::problems()?);
    Ok(problems)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_repository_is_tidy() {
        let problems = super::problems().unwrap();
        assert!(problems.is_empty(), "\n{}", problems.join("\n"));
    }
}
