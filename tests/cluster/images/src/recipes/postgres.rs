//! PostgreSQL as the well-known image has it, of the files of Debian's packages.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::strings;
use crate::{Image, Run, Sources, Tree};

/// The major version.
const VERSION: &str = "15";
/// The user and group `postgres`, as the well-known image numbers them.
const POSTGRES: u32 = 999;

/// What scripts in and around the image use, in addition to the programs of PostgreSQL.
const PROGRAMS: [&str; 39] = [
    "basename",
    "bash",
    "cat",
    "chmod",
    "chown",
    "cp",
    "cut",
    "date",
    "dirname",
    "env",
    "expr",
    "find",
    "flock",
    "grep",
    "head",
    "id",
    "ln",
    "ls",
    "mkdir",
    "mktemp",
    "mv",
    "printenv",
    "printf",
    "rm",
    "rmdir",
    "sed",
    "setpriv",
    "sh",
    "sha256sum",
    "sleep",
    "sort",
    "stat",
    "sync",
    "tail",
    "tee",
    "test",
    "touch",
    "tr",
    "wc",
];

/// PostgreSQL 15: its server, clients and extensions, a shell, and an entrypoint that knows
/// `POSTGRES_DB`, `POSTGRES_USER`, `POSTGRES_PASSWORD` and `PGDATA`. Without LLVM: queries are not
/// compiled.
///
/// # Errors
/// If PostgreSQL, the shell or a library of them is not found.
pub fn postgres(sources: &Sources) -> Result<Image> {
    let mut tree = Tree::new();
    let missing = || format!("PostgreSQL {VERSION} is missing: install postgresql-{VERSION}");
    let library = format!("/usr/lib/postgresql/{VERSION}");
    let from = sources.path(&format!("{library}/bin/postgres")).with_context(missing)?;
    let home = from.ancestors().nth(2).with_context(missing)?;
    let skip = |path: &Path| {
        path.starts_with("lib/bitcode") || path.starts_with("lib/pgxs") || is_llvm(path)
    };
    tree.copy_all(&library, home, &skip)?;
    let share = format!("/usr/share/postgresql/{VERSION}");
    let from = sources.path(&share).with_context(missing)?;
    tree.copy_all(&share, &from, &|path| path.starts_with("man"))?;
    let mut files = files(&home.join("bin"))?;
    let extensions = self::files(&home.join("lib"))?.into_iter();
    files.extend(extensions.filter(|path| is_library(path) && !is_llvm(path)));
    sources.add_libraries(&mut tree, &files)?;

    for name in PROGRAMS {
        sources.add(&mut tree, name)?;
    }
    for usual in ["/usr/lib/locale/C.utf8", "/usr/share/zoneinfo"] {
        if let Some(from) = sources.path(usual) {
            // The same zones twice more, counted otherwise.
            let skip = |path: &Path| path.starts_with("right") || path.starts_with("posix");
            tree.copy_all(usual, &from, &skip)?;
        }
    }
    tree.text("/usr/bin/docker-entrypoint.sh", 0o755, ENTRYPOINT);
    tree.folder("/docker-entrypoint-initdb.d", 0o755, 0);
    tree.folder("/var/lib/postgresql/data", 0o700, POSTGRES);
    tree.folder("/run/postgresql", 0o2775, POSTGRES);
    tree.link("/var/run", "/run");
    tree.users(&[("postgres", POSTGRES, "/var/lib/postgresql")]);
    Image::new(&tree, &run(&library))
}

const ENTRYPOINT: &str = include_str!("../files/docker-entrypoint.sh");

fn run(library: &str) -> Run {
    Run {
        entrypoint: strings(&["docker-entrypoint.sh"]),
        command: strings(&["postgres"]),
        environment: vec![
            format!(
                "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:{library}/bin"
            ),
            "LANG=C.UTF-8".to_owned(),
            format!("PG_MAJOR={VERSION}"),
            "PGDATA=/var/lib/postgresql/data".to_owned(),
        ],
        ..Run::default()
    }
}

fn is_library(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "so")
}

/// Whether a file needs LLVM, which is larger than all the rest.
fn is_llvm(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("llvmjit"))
}

/// The files that lie directly in `folder`.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    Ok(files)
}
