use imo::Imo;
use innkeeper_sdk::{Desired, Resource, names};
use kuri::Kuri;

use crate::{Kabocha, KabochaSpec};

/// A desired child.
#[derive(Clone, Debug)]
pub(crate) enum Child {
    /// An Imo.
    Imo(Imo),
    /// A Kuri.
    Kuri(Kuri),
    /// A smaller Kabocha.
    Kabocha(Kabocha),
}

impl Child {
    /// Returns all desired children in the order of the spec.
    pub(crate) fn all(kabocha: &Kabocha) -> Vec<Self> {
        let KabochaSpec { imos, kuris, kabochas, dummy: _ } = &kabocha.spec;
        let named = |name: &str| joined(&kabocha.metadata.name, name);
        let imos = imos.iter().map(|one| Self::Imo(Imo::new(named(&one.name), one.spec.clone())));
        let kuris =
            kuris.iter().map(|one| Self::Kuri(Kuri::new(named(&one.name), one.spec.clone())));
        let kabochas = kabochas.iter().map(|one| {
            let spec = KabochaSpec {
                imos: one.imos.clone(),
                kuris: one.kuris.clone(),
                ..KabochaSpec::default()
            };
            Self::Kabocha(Kabocha::new(named(&one.name), spec))
        });
        imos.chain(kuris).chain(kabochas).collect()
    }

    /// Returns the kind.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Imo(_) => Imo::KIND,
            Self::Kuri(_) => Kuri::KIND,
            Self::Kabocha(_) => Kabocha::KIND,
        }
    }

    /// Returns the name.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Imo(imo) => &imo.metadata.name,
            Self::Kuri(kuri) => &kuri.metadata.name,
            Self::Kabocha(kabocha) => &kabocha.metadata.name,
        }
    }

    /// Adds the child to the desired state.
    pub(crate) fn desire(self, desired: Desired) -> Desired {
        match self {
            Self::Imo(imo) => desired.object(imo),
            Self::Kuri(kuri) => desired.object(kuri),
            Self::Kabocha(kabocha) => desired.object(kabocha),
        }
    }

    /// Returns the name of a Kuri that is too long for a label value, also of one in a smaller
    /// Kabocha: the guest creates no part of a tree that cannot be complete.
    pub(crate) fn unusable_name(&self) -> Option<String> {
        match self {
            Self::Imo(_) => None,
            Self::Kuri(kuri) => {
                let name = &kuri.metadata.name;
                (!names::is_label_value(name)).then(|| name.clone())
            }
            Self::Kabocha(kabocha) => Self::all(kabocha).iter().find_map(Self::unusable_name),
        }
    }
}

fn joined(parent: &str, child: &str) -> String {
    format!("{parent}-{child}")
}
