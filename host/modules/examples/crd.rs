//! Prints the CustomResourceDefinition of Module: `cargo xtask crds` writes it to `deploy/crds`.

use std::io::Write as _;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    std::io::stdout().write_all(innkeeper_modules::crd_yaml()?.as_bytes())?;
    Ok(())
}
