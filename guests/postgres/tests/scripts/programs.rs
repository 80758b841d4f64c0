//! The programs of PostgreSQL.

use std::env;
use std::path::{Path, PathBuf};

/// Directories in addition to the search path, as in the packages of Debian and Red Hat.
const FOLDERS: [&str; 2] = ["/usr/lib/postgresql", "/usr/pgsql-15"];

/// A program that only the package of the server contains.
const SERVER: &str = "initdb";

/// Returns the directory with all programs of PostgreSQL.
///
/// # Panics
/// If there is none: a test that cannot run has not passed.
pub(crate) fn folder() -> PathBuf {
    if let Some(folder) = env::var_os("INNKEEPER_POSTGRES_BIN").map(PathBuf::from) {
        assert!(
            is_whole(&folder),
            "INNKEEPER_POSTGRES_BIN is {}, which lacks programs of PostgreSQL",
            folder.display()
        );
        return folder;
    }
    let of_version = |folder: &Path| -> Vec<PathBuf> {
        let entries = folder.read_dir().into_iter().flatten().flatten();
        entries.map(|entry| entry.path().join("bin")).collect()
    };
    let mut found: Vec<PathBuf> =
        FOLDERS.iter().flat_map(|folder| of_version(Path::new(folder))).collect();
    // Version 15 first, which the sources name.
    found.sort_by_key(|folder| !folder.to_string_lossy().contains("15"));
    let path = env::var_os("PATH").unwrap_or_default();
    found.extend(env::split_paths(&path));
    found.into_iter().find(|folder| is_whole(folder)).expect(
        "PostgreSQL is missing: the scripts are tested with a real one. On Debian: \
         apt-get install postgresql-15 (or postgresql). Elsewhere: its server and client \
         programs in PATH, or their folder in INNKEEPER_POSTGRES_BIN",
    )
}

fn is_whole(folder: &Path) -> bool {
    [SERVER, "postgres", "pg_ctl", "psql", "pg_dump", "pg_dumpall", "pg_restore", "pg_isready"]
        .iter()
        .all(|program| folder.join(program).is_file())
}
