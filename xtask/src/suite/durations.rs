//! How long the programs of tests took when they last ran: a run starts the longest ones first, so
//! that it does not wait at its end for one program that started late.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use innkeeper_toolchain::cache_folder;

/// The file in the user's cache folder: a fresh clone has the times of the clone before.
const FILE: &str = "suite/durations.json";

/// The seconds of each program by its name, kept in a file.
#[derive(Debug)]
pub(super) struct Durations {
    file: PathBuf,
    seconds: BTreeMap<String, f32>,
}

impl Durations {
    /// Those of the user's last runs; none if there is no file or it is not readable.
    ///
    /// # Errors
    /// If the environment names no cache folder.
    pub(super) fn of_user() -> Result<Self> {
        Ok(Self::at(&cache_folder()?.join(FILE)))
    }

    /// Those of a file.
    pub(super) fn at(file: &Path) -> Self {
        let text = fs::read_to_string(file).unwrap_or_default();
        let seconds = serde_json::from_str(&text).unwrap_or_default();
        Self { file: file.to_owned(), seconds }
    }

    /// Sorts programs: first those without a time, since one of them may be long, then the longest
    /// ones. Programs with the same time keep their order.
    pub(super) fn sort<T>(&self, programs: &mut [T], name: impl Fn(&T) -> String) {
        let seconds = |one: &T| self.seconds.get(&name(one)).copied().unwrap_or(f32::INFINITY);
        programs.sort_by(|a, b| seconds(b).total_cmp(&seconds(a)));
    }

    /// Sets the time of a program.
    pub(super) fn set(&mut self, program: String, seconds: f32) {
        self.seconds.insert(program, seconds);
    }

    /// Writes the file, as a whole: another run may read it at the same time.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn write(&self) -> Result<()> {
        let folder = self.file.parent().unwrap_or(Path::new("."));
        let write = || -> Result<()> {
            fs::create_dir_all(folder)?;
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            serde_json::to_writer_pretty(&mut file, &self.seconds)?;
            file.persist(&self.file)?;
            Ok(())
        };
        write().with_context(|| format!("cannot write {}", self.file.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(durations: &Durations, programs: &[&str]) -> Vec<String> {
        let mut programs: Vec<String> = programs.iter().map(|&name| name.to_owned()).collect();
        durations.sort(&mut programs, Clone::clone);
        programs
    }

    #[test]
    fn programs_of_unknown_length_start_first_and_then_the_longest() {
        let folder = tempfile::tempdir().unwrap();
        let mut durations = Durations::at(&folder.path().join("durations.json"));
        durations.set("short".to_owned(), 1.0);
        durations.set("long".to_owned(), 60.0);
        durations.set("middle".to_owned(), 9.0);
        let found = sorted(&durations, &["a", "long", "middle", "new", "short"]);
        assert_eq!(found, ["a", "new", "long", "middle", "short"]);
    }

    #[test]
    fn times_are_kept_and_a_file_that_is_not_readable_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("suite/durations.json");
        let mut durations = Durations::at(&file);
        durations.set("b".to_owned(), 2.0);
        durations.write().unwrap();
        assert_eq!(sorted(&Durations::at(&file), &["a", "b", "c"]), ["a", "c", "b"]);
        fs::write(&file, "{").unwrap();
        assert_eq!(sorted(&Durations::at(&file), &["b", "c"]), ["b", "c"]);
    }
}
