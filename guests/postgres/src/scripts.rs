use innkeeper_sdk::kinds::ConfigMap;

use crate::names::digest;

/// The scripts of the containers.
const SCRIPTS: [(&str, &str); 6] = [
    ("backup.sh", include_str!("../scripts/backup.sh")),
    ("common.sh", include_str!("../scripts/common.sh")),
    ("original_backups.sh", include_str!("../scripts/original_backups.sh")),
    ("prepare.sh", include_str!("../scripts/prepare.sh")),
    ("restored_from.sh", include_str!("../scripts/restored_from.sh")),
    ("serve.sh", include_str!("../scripts/serve.sh")),
];

/// The volume of the scripts.
pub(crate) const VOLUME: &str = "scripts";
/// The directory at which containers mount the volume.
pub(crate) const FOLDER: &str = "/scripts";

/// Returns the command that runs a script.
pub(crate) fn command(script: &str) -> [String; 2] {
    ["sh".to_owned(), format!("{FOLDER}/{script}.sh")]
}

/// Returns the `ConfigMap` of the scripts. Its name contains a digest of the scripts: changed
/// scripts are another `ConfigMap`, which rolls out new pods, and running pods keep theirs.
pub(crate) fn config_map(server: &str) -> ConfigMap {
    SCRIPTS
        .iter()
        .fold(ConfigMap::new(name(server)), |config_map, (name, text)| config_map.data(name, *text))
}

/// Returns the name of the `ConfigMap`.
pub(crate) fn name(server: &str) -> String {
    let all: Vec<&str> = SCRIPTS.iter().map(|(_, text)| *text).collect();
    format!("{server}-scripts-{}", digest(&all.join("\0"), 8))
}
