//! Compiled guests in the folder of `INNKEEPER_CACHE_DIR`.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

// Each test file uses a part of it.
#[allow(dead_code)]
mod support;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Output;

use expect_test::expect;

use support::{component, text};

/// Runs `innkeeper inspect` on a guest, with compiled code in a folder.
fn inspect(cache: &Path) -> Output {
    let mut command = support::command();
    command.args(["inspect", &component("podroute")]).env("INNKEEPER_CACHE_DIR", cache);
    command.output().unwrap()
}

/// The files with compiled code, each with its inode.
fn entries(cache: &Path) -> Vec<(PathBuf, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    let files = fs::read_dir(cache.join("commands")).unwrap().map(|entry| entry.unwrap());
    let code = files.filter(|file| file.path().extension().is_some_and(|end| end == "code"));
    code.map(|file| (file.path(), file.metadata().unwrap().ino())).collect()
}

#[test]
fn guest_is_compiled_once_when_a_cache_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("code");

    let first = inspect(&cache);
    let compiled = entries(&cache);
    let second = inspect(&cache);

    assert!(first.status.success(), "{}", text(&first.stderr));
    assert_eq!(compiled.len(), 1);
    assert_eq!(entries(&cache), compiled, "the second command compiled the guest again");
    assert_eq!(first.stdout, second.stdout);
}

#[test]
fn guest_is_compiled_once_in_the_cache_folder_of_the_user() {
    let home = tempfile::tempdir().unwrap();
    let inspect = |arguments: &[&str], dir: Option<&str>| {
        let mut command = support::command();
        command.args(arguments).arg(component("podroute")).env("HOME", home.path());
        command.env_remove("XDG_CACHE_HOME").env_remove("INNKEEPER_CACHE_DIR");
        command.envs(dir.map(|dir| ("INNKEEPER_CACHE_DIR", dir)));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_eq!(text(&output.stderr), "");
    };
    let cache = home.path().join(".cache/innkeeper/code");

    inspect(&["inspect"], Some(""));
    assert!(!home.path().join(".cache").exists(), "no code is kept for an empty folder");
    inspect(&["inspect"], None);
    let compiled = entries(&cache);
    inspect(&["rbac", "--module", "podroute"], None);

    assert_eq!(compiled.len(), 1);
    assert_eq!(entries(&cache), compiled, "the second command compiled the guest again");
    let mode = fs::metadata(&cache).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "{mode:o}");
}

#[test]
fn test_compiles_a_guest_once_for_virtual_time() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("code");
    let case = folder.path().join("case");
    fs::create_dir(&case).unwrap();
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    fs::write(case.join("00-install.yaml"), map).unwrap();
    fs::write(case.join("00-assert.yaml"), map).unwrap();
    let test = |cache: &Path| {
        let mut command = support::command();
        command.args(["test", case.to_str().unwrap(), "--guest", &component("podroute")]);
        let output = command.env("INNKEEPER_CACHE_DIR", cache).output().unwrap();
        assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    };

    test(&cache);
    let compiled = entries(&cache);
    test(&cache);

    assert_eq!(compiled.len(), 1, "{compiled:?}");
    assert_eq!(entries(&cache), compiled, "the second command compiled the guest again");
    // The code of other commands is interrupted by the clock, and not by a count of instructions.
    assert!(inspect(&cache).status.success());
    assert_eq!(entries(&cache).len(), 2);
    test(Path::new(""));
}

#[test]
fn compiled_guest_is_replaced_when_its_file_was_changed() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("code");
    let first = inspect(&cache);
    let (file, _) = entries(&cache).remove(0);
    let mut changed = fs::read(&file).unwrap();
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    fs::write(&file, &changed).unwrap();

    let second = inspect(&cache);

    assert!(second.status.success(), "{}", text(&second.stderr));
    assert_eq!(first.stdout, second.stdout);
    assert!(fs::read(&file).unwrap() != changed, "the command used the changed file");
}

#[test]
fn command_fails_when_others_may_write_to_the_cache_folder() {
    let folder = tempfile::tempdir().unwrap();
    let commands = folder.path().join("commands");
    fs::create_dir(&commands).unwrap();
    fs::set_permissions(&commands, Permissions::from_mode(0o777)).unwrap();

    let output = inspect(folder.path());

    assert_eq!(output.status.code(), Some(1));
    expect![[r#"
        innkeeper: INNKEEPER_CACHE_DIR: the folder DIR/commands for compiled code may be written to by others (mode 777), so others could put code there that runs as this host: give one that does not exist yet (it is made, also within that one), or `chown` it to this user and `chmod 700` it
    "#]]
        .assert_eq(&text(&output.stderr).replace(folder.path().to_str().unwrap(), "DIR"));
}
