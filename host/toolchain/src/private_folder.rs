use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use rustix::process::geteuid;

/// The permission of the group and of others to write.
const OTHERS_WRITE: u32 = 0o022;

/// Creates `folder` within `base`, for this user only: it holds programs that later builds run.
///
/// # Errors
/// If the folder cannot be made, or another user can write to it or to its parents up to `base`.
pub fn create(folder: &Path, base: &Path) -> Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    let us = geteuid().as_raw();
    for one in folder.ancestors().take_while(|one| one.starts_with(base)) {
        let shown = one.display();
        let metadata = one.metadata().with_context(|| format!("cannot read {shown}"))?;
        if metadata.uid() != us {
            bail!(
                "cannot build in {shown}: it belongs to user {}, not to {us}; remove it, or set XDG_CACHE_HOME to a folder of yours",
                metadata.uid()
            );
        }
        if metadata.mode() & OTHERS_WRITE != 0 {
            bail!(
                "cannot build in {shown}: other users may write to it; run `chmod go-w {shown}` if you trust what it holds, otherwise remove it"
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn folder_is_refused_when_others_can_write_to_it_or_to_its_parent() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().join("innkeeper");
        let folder = base.join("builds/1");
        create(&folder, &base).unwrap();
        for one in [&base, &folder] {
            assert_eq!(one.metadata().unwrap().mode() & 0o777, 0o700);
            set_permissions(one, Permissions::from_mode(0o770)).unwrap();
            let error = create(&folder, &base).unwrap_err().to_string();
            assert!(error.contains("chmod go-w"), "{error}");
            set_permissions(one, Permissions::from_mode(0o755)).unwrap();
        }
        create(&folder, &base).unwrap();
    }
}
