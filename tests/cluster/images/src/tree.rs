//! The files of an image.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use tar::{Builder, EntryType, Header};

/// Files, folders and links by their path in the image. All belong to root unless another owner is
/// given.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    // Sorted, with every folder before what lies in it.
    entries: BTreeMap<PathBuf, Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    mode: u32,
    owner: u32,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    Folder,
    Text(Vec<u8>),
    Copy(PathBuf),
    Link(PathBuf),
}

impl Tree {
    /// Nothing but the usual folders and the links from `/bin`, `/sbin`, `/lib` and `/lib64` into
    /// `/usr`, so that a program is found by whichever of its paths.
    pub fn new() -> Self {
        let mut tree = Self::default();
        for name in ["bin", "sbin", "lib", "lib64"] {
            tree.folder(Path::new("/usr").join(name), 0o755, 0);
            tree.link(Path::new("/").join(name), Path::new("usr").join(name));
        }
        tree.folder("/tmp", 0o1777, 0);
        tree
    }

    /// A folder that belongs to the user and group `owner`.
    pub fn folder(&mut self, path: impl AsRef<Path>, mode: u32, owner: u32) {
        self.put(path.as_ref(), Entry { mode, owner, what: What::Folder });
    }

    /// A file with this text.
    pub fn text(&mut self, path: impl AsRef<Path>, mode: u32, text: impl Into<Vec<u8>>) {
        self.put(path.as_ref(), Entry { mode, owner: 0, what: What::Text(text.into()) });
    }

    /// A symbolic link at `path` to `target`, which may be relative.
    pub fn link(&mut self, path: impl AsRef<Path>, target: impl Into<PathBuf>) {
        self.put(path.as_ref(), Entry { mode: 0o777, owner: 0, what: What::Link(target.into()) });
    }

    /// Adds a copy of the file at `from`. It is executable if that file is.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn copy(&mut self, path: impl AsRef<Path>, from: &Path) -> Result<()> {
        let metadata = fs::metadata(from).with_context(|| from.display().to_string())?;
        let mode = if metadata.permissions().mode() & 0o111 == 0 { 0o644 } else { 0o755 };
        let what = What::Copy(from.to_owned());
        self.put(path.as_ref(), Entry { mode, owner: 0, what });
        Ok(())
    }

    /// Adds copies of all files below the folder `from`, except those whose path within it `skip`
    /// chooses.
    ///
    /// # Errors
    /// If a folder or file cannot be read.
    pub fn copy_all(
        &mut self,
        path: impl AsRef<Path>,
        from: &Path,
        skip: &dyn Fn(&Path) -> bool,
    ) -> Result<()> {
        self.copy_below(path.as_ref(), from, Path::new(""), skip)
    }

    fn copy_below(
        &mut self,
        to: &Path,
        from: &Path,
        below: &Path,
        skip: &dyn Fn(&Path) -> bool,
    ) -> Result<()> {
        let folder = from.join(below);
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let below = below.join(entry?.file_name());
            if skip(&below) {
                continue;
            }
            let (source, target) = (from.join(&below), to.join(&below));
            if source.is_dir() {
                self.folder(&target, 0o755, 0);
                self.copy_below(to, from, &below, skip)?;
            } else if source.is_file() {
                self.copy(&target, &source)?;
            }
        }
        Ok(())
    }

    /// Users and their groups of the same name and number, in addition to root.
    pub fn users(&mut self, users: &[(&str, u32, &str)]) {
        let mut passwd = vec!["root:x:0:0:root:/root:/bin/sh\n".to_owned()];
        let mut group = vec!["root:x:0:\n".to_owned()];
        for (name, id, home) in users {
            passwd.push(format!("{name}:x:{id}:{id}:{name}:{home}:/bin/sh\n"));
            group.push(format!("{name}:x:{id}:\n"));
        }
        self.text("/etc/passwd", 0o644, passwd.concat());
        self.text("/etc/group", 0o644, group.concat());
    }

    fn put(&mut self, path: &Path, entry: Entry) {
        let path = normal(path);
        for above in path.ancestors().skip(1) {
            if !above.as_os_str().is_empty() && !self.entries.contains_key(above) {
                let folder = Entry { mode: 0o755, owner: 0, what: What::Folder };
                self.entries.insert(above.to_owned(), folder);
            }
        }
        self.entries.insert(path, entry);
    }

    /// Writes the tree as a tar archive, always the same for the same files.
    ///
    /// # Errors
    /// If a file that the tree copies cannot be read, or `to` takes no more.
    pub fn write(&self, to: impl Write) -> Result<()> {
        let mut archive = Builder::new(to);
        for (path, entry) in &self.entries {
            entry.append(&mut archive, path).with_context(|| path.display().to_string())?;
        }
        archive.finish()?;
        Ok(())
    }

    /// Writes the tree as files below `folder`, which it makes. Owners are left out.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn unfold(&self, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        for (path, entry) in &self.entries {
            let to = folder.join(path);
            entry.unfold(&to).with_context(|| to.display().to_string())?;
        }
        Ok(())
    }
}

impl Entry {
    fn append(&self, archive: &mut Builder<impl Write>, path: &Path) -> Result<()> {
        let mut header = Header::new_gnu();
        header.set_mode(self.mode);
        header.set_uid(self.owner.into());
        header.set_gid(self.owner.into());
        header.set_mtime(0);
        header.set_size(0);
        match &self.what {
            What::Folder => {
                header.set_entry_type(EntryType::Directory);
                // As tar itself names folders.
                let path = format!("{}/", path.display());
                archive.append_data(&mut header, path, std::io::empty())?;
            }
            What::Link(target) => {
                header.set_entry_type(EntryType::Symlink);
                archive.append_link(&mut header, path, target)?;
            }
            What::Text(text) => {
                header.set_size(text.len() as u64);
                archive.append_data(&mut header, path, text.as_slice())?;
            }
            What::Copy(from) => {
                let file = fs::File::open(from)?;
                header.set_size(file.metadata()?.len());
                archive.append_data(&mut header, path, file)?;
            }
        }
        Ok(())
    }

    fn unfold(&self, to: &Path) -> Result<()> {
        match &self.what {
            What::Folder => fs::create_dir_all(to)?,
            What::Link(target) => std::os::unix::fs::symlink(target, to)?,
            What::Text(text) => fs::write(to, text)?,
            What::Copy(from) => {
                fs::copy(from, to)?;
            }
        }
        if !matches!(self.what, What::Link(_)) {
            fs::set_permissions(to, fs::Permissions::from_mode(self.mode))?;
        }
        Ok(())
    }
}

/// The one path under which a file lies in an image: relative to its root, and below `/usr`.
fn normal(path: &Path) -> PathBuf {
    let path = path.strip_prefix("/").unwrap_or(path);
    let first = path.components().next().map(|first| first.as_os_str().to_owned());
    let moved = ["bin", "sbin", "lib", "lib64"];
    let is_inside = path.components().count() > 1;
    match first {
        Some(first) if is_inside && moved.iter().any(|name| first == *name) => {
            Path::new("usr").join(path)
        }
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail by it")]

    use super::*;

    fn archive(tree: &Tree) -> Vec<u8> {
        let mut bytes = Vec::new();
        tree.write(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn archive_is_equal_whatever_the_order_and_times_of_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("a");
        fs::write(&source, "a").unwrap();
        let mut one = Tree::new();
        one.text("/etc/b", 0o644, "b");
        one.copy("/etc/a", &source).unwrap();

        fs::File::open(&source).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        let mut two = Tree::new();
        two.copy("/etc/a", &source).unwrap();
        two.text("/etc/b", 0o644, "b");
        assert_eq!(archive(&one), archive(&two));

        two.text("/etc/b", 0o600, "b");
        assert_ne!(archive(&one), archive(&two));
    }

    #[test]
    fn every_folder_comes_before_what_lies_in_it_and_a_library_lies_where_its_link_points() {
        let mut tree = Tree::new();
        tree.text("/lib/x86_64-linux-gnu/libc.so.6", 0o755, "c");
        tree.text("/var/www/index.html", 0o644, "w");
        let bytes = archive(&tree);
        let mut archive = tar::Archive::new(bytes.as_slice());
        let paths: Vec<String> = archive
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().display().to_string())
            .collect();
        let at = |path: &str| paths.iter().position(|one| one == path);
        assert!(at("usr/lib/x86_64-linux-gnu/libc.so.6").is_some(), "{paths:?}");
        assert!(at("var/").unwrap() < at("var/www/").unwrap());
        assert!(at("var/www/").unwrap() < at("var/www/index.html").unwrap());

        let folder = tempfile::tempdir().unwrap();
        tree.unfold(folder.path()).unwrap();
        assert_eq!(fs::read(folder.path().join("lib/x86_64-linux-gnu/libc.so.6")).unwrap(), b"c");
    }
}
