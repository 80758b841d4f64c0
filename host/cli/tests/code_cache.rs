//! Compiled guests in the folder of `INNKEEPER_CACHE_DIR`.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

// Each test file uses a part of it.
#[allow(dead_code)]
mod support;

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::SystemTime;

use expect_test::expect;
use innkeeper_tiny_guests::Tiny;

use support::{Files, component, text};

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

/// Whether a command has used the code of an entry since [`unused`]: a use sets its time.
fn is_used(entry: &Path) -> bool {
    fs::metadata(entry).unwrap().modified().unwrap() != SystemTime::UNIX_EPOCH
}

/// Sets the time of an entry so that [`is_used`] finds its next use.
fn unused(entry: &Path) {
    File::open(entry).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
}

/// A command that loads a guest: its arguments, and the status and a part of the error with which
/// it ends.
type Loads<'a> = (&'a [&'a str], i32, &'a str);

/// Runs a command with compiled code in a folder.
fn load(cache: &Path, (arguments, status, error): Loads<'_>) {
    let mut command = support::command();
    let output = command.args(arguments).env("INNKEEPER_CACHE_DIR", cache).output().unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {stderr}");
    assert!(stderr.contains(error), "{arguments:?}: {stderr}");
}

#[test]
fn guest_is_compiled_by_the_first_command_and_not_by_the_others() {
    let files = Files::new();
    let guest = files.write("guest.wasm", Tiny::default().component());
    let primary = "apiVersion: example.com/v1\nkind: Tiny\nmetadata: {name: one, namespace: web}\n";
    let primary = files.write("primary.yaml", primary);
    // No API server listens there: `push` loads the guest before it connects.
    let kubeconfig = files.write(
        "kubeconfig",
        "{apiVersion: v1, kind: Config, current-context: c, users: [{name: u, user: {}}],
        contexts: [{name: c, context: {cluster: c, user: u}}],
        clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]}",
    );
    let push = ["push", &guest, "--module", "tiny", "--kubeconfig", &kubeconfig];
    let commands: [Loads<'_>; 4] = [
        (&["inspect", &guest], 0, ""),
        (&["render", &guest, "-f", &primary], 0, ""),
        (&["rbac", &guest, "--module", "tiny"], 0, ""),
        (&push, 1, "the API server is unavailable"),
    ];
    let mut caches = Vec::new();
    for (index, command) in commands.into_iter().enumerate() {
        let cache = files.0.path().join(format!("code-{index}"));
        load(&cache, command);
        assert_eq!(entries(&cache).len(), 1, "{command:?} kept no code");
        caches.push((cache, command));
    }

    // The code that `inspect` kept is used by all, and that of the others by `inspect`.
    let inspect = commands[0];
    for (cache, command) in &caches {
        for (cache, command) in [(&caches[0].0, *command), (cache, inspect)] {
            let compiled = entries(cache);
            unused(&compiled[0].0);
            load(cache, command);
            assert!(is_used(&compiled[0].0), "{command:?} compiled the guest again");
            assert_eq!(entries(cache), compiled, "{command:?} compiled the guest again");
        }
    }
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
    assert_eq!(compiled.len(), 1, "{compiled:?}");
    unused(&compiled[0].0);
    test(&cache);

    assert!(is_used(&compiled[0].0), "the second command compiled the guest again");
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
