use innkeeper_sdk::kinds::ConfigMap;

use crate::names::digest;

/// What the containers run.
const SCRIPTS: [(&str, &str); 4] = [
    ("backup.sh", include_str!("../scripts/backup.sh")),
    ("common.sh", include_str!("../scripts/common.sh")),
    ("prepare.sh", include_str!("../scripts/prepare.sh")),
    ("serve.sh", include_str!("../scripts/serve.sh")),
];

/// The name of the volume, and where the containers see it.
pub(crate) const VOLUME: &str = "scripts";
/// Where the containers see it.
pub(crate) const FOLDER: &str = "/scripts";

/// What a container runs to run a script.
pub(crate) fn command(script: &str) -> [String; 2] {
    ["sh".to_owned(), format!("{FOLDER}/{script}.sh")]
}

/// The scripts. The name holds a digest of them: other scripts are another `ConfigMap`, which
/// rolls out the pods that name it, and a pod never runs others than it was started with.
pub(crate) fn config_map(server: &str) -> ConfigMap {
    SCRIPTS
        .iter()
        .fold(ConfigMap::new(name(server)), |config_map, (name, text)| config_map.data(name, *text))
}

/// The name of the `ConfigMap`.
pub(crate) fn name(server: &str) -> String {
    let all: Vec<&str> = SCRIPTS.iter().map(|(_, text)| *text).collect();
    format!("{server}-scripts-{}", digest(&all.join("\0"), 8))
}
