//! Certificates: that a client trusts them at each step of a rotation, also across restarts.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fastrand::Rng;
use innkeeper_admission::certificates::{Certificates, Change, Lifetimes, Observed, Phase};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

const NOW: i64 = 1_800_000_000;
const DAY: i64 = 24 * 3_600;
const NAME: &str = "innkeeper-admission.innkeeper-system.svc";

fn names() -> Vec<String> {
    vec![NAME.to_owned()]
}

fn made() -> Certificates {
    Certificates::make(&names(), Lifetimes::default(), NOW).unwrap()
}

fn changed(certificates: Certificates, change: Change, now: i64) -> Certificates {
    certificates.change(change, &names(), Lifetimes::default(), now).unwrap()
}

/// Whether a client with this bundle trusts this certificate for the name.
fn is_trusted(bundle: &str, certificate: &str, name: &str, now: i64) -> bool {
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        roots.add(root.unwrap()).unwrap();
    }
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
    let verifier = verifier.build().unwrap();
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(now.try_into().unwrap()));
    verifier.verify_server_cert(&certificate, &[], &name, &[], now).is_ok()
}

fn read_back(certificates: &Certificates) -> Certificates {
    let data = certificates.secret_data();
    let data = data.into_iter().map(|(name, text)| (name, text.into_bytes())).collect();
    Certificates::from_secret_data(&data).unwrap()
}

#[test]
fn client_trusts_the_certificate_for_its_names_and_time_only() {
    let certificates = made();
    let serving = certificates.serving().certificate();
    let trusts = |name, now| is_trusted(&certificates.bundle(), serving, name, now);
    assert!(trusts(NAME, NOW));
    assert!(trusts(NAME, NOW - 1_800), "a clock half an hour behind");
    assert!(!trusts("other.innkeeper-system.svc", NOW));
    assert!(!trusts(NAME, NOW + 91 * DAY));
    assert!(!is_trusted(&made().bundle(), serving, NAME, NOW), "another authority");
}

#[test]
fn secret_keeps_each_phase() {
    let announced = changed(made(), Change::Announce, NOW);
    let switched = changed(announced.clone(), Change::Switch, NOW + 60);
    for certificates in [made(), announced, switched] {
        assert_eq!(read_back(&certificates), certificates);
        // An authority that was read back signs as before.
        let renewed = changed(read_back(&certificates), Change::RenewServing, NOW + 1);
        let serving = renewed.serving().certificate();
        assert!(is_trusted(&certificates.bundle(), serving, NAME, NOW));
    }
}

#[test]
fn changed_secret_is_refused_by_the_name_of_its_member() {
    let announced = changed(made(), Change::Announce, NOW);
    let data: BTreeMap<String, Vec<u8>> =
        announced.secret_data().into_iter().map(|(name, text)| (name, text.into_bytes())).collect();
    let other: BTreeMap<String, String> = made().secret_data();
    for name in data.keys() {
        let error = |value: Option<Vec<u8>>| {
            let mut data = data.clone();
            data.remove(name);
            data.extend(value.map(|value| (name.clone(), value)));
            Certificates::from_secret_data(&data).err().map(|error| error.to_string())
        };
        assert!(error(None).unwrap().contains(name.as_str()));
        assert!(error(Some(vec![0xff])).unwrap().contains("invalid"), "{name}");
        assert!(error(Some(vec![b'x'; 17 << 10])).unwrap().contains("bytes"), "{name}");
    }
    let mut data = data.clone();
    data.insert("ca.key".to_owned(), other["ca.key"].clone().into_bytes());
    let error = Certificates::from_secret_data(&data).unwrap_err().to_string();
    assert!(error.contains("not the key of ca.crt"), "{error}");
}

#[test]
fn keys_stay_out_of_debug_output() {
    let announced = changed(made(), Change::Announce, NOW);
    assert!(!format!("{announced:?}").contains("PRIVATE"));
}

#[test]
fn change_is_due_by_age_and_by_what_others_have() {
    let none = Observed::default();
    let everywhere = |since| Observed {
        bundle_everywhere_since: Some(since),
        serving_everywhere_since: Some(since),
    };
    let stable = made();
    let due = |it: &Certificates, observed, day: i64| it.due(&names(), observed, NOW + day * DAY);
    assert_eq!(due(&stable, none, 59), None);
    assert_eq!(due(&stable, none, 60), Some(Change::RenewServing));
    assert_eq!(stable.due(&["x.y".to_owned()], none, NOW), Some(Change::RenewServing));
    assert_eq!(due(&stable, none, 365), Some(Change::Replace));

    let later = changed(stable, Change::RenewServing, NOW + 300 * DAY);
    assert_eq!(due(&later, none, 304), None);
    assert_eq!(due(&later, none, 305), Some(Change::Announce));

    let start = NOW + 305 * DAY;
    let announced = changed(later, Change::Announce, start);
    let due = |it: &Certificates, observed, second: i64| it.due(&names(), observed, start + second);
    assert_eq!(due(&announced, none, 100), None);
    assert_eq!(due(&announced, everywhere(start + 80), 100), None);
    assert_eq!(due(&announced, everywhere(start + 70), 100), Some(Change::Switch));
    // The clock went back by an hour.
    assert_eq!(due(&announced, everywhere(start + 3_600), 100), Some(Change::Switch));

    let switched = changed(announced, Change::Switch, start + 100);
    assert_eq!(due(&switched, everywhere(start + 141), 200), None);
    assert_eq!(due(&switched, everywhere(start + 140), 200), Some(Change::DropPrevious));
    let stable = changed(switched, Change::DropPrevious, start + 200);
    assert_eq!(*stable.phase(), Phase::Stable);
    assert_eq!(stable.due(&names(), none, start + 200), None);
}

#[test]
fn announced_authority_replaces_one_that_has_ended() {
    let announced = changed(made(), Change::Announce, NOW + 364 * DAY);
    let due = |day: i64| announced.due(&names(), Observed::default(), NOW + day * DAY);
    assert_eq!(due(365), Some(Change::Switch));
    assert_eq!(due(364 + 365), Some(Change::Replace), "the announced authority has ended too");

    let now = NOW + 365 * DAY;
    let switched = changed(announced.clone(), Change::Switch, now);
    let serving = switched.serving().certificate();
    assert!(is_trusted(&announced.bundle(), serving, NAME, now));
    assert_eq!(switched.due(&names(), Observed::default(), now), None);
}

#[test]
fn certificate_for_the_same_names_in_another_order_is_not_renewed() {
    let names = ["a.svc".to_owned(), "b.svc".to_owned()];
    let certificates = Certificates::make(&names, Lifetimes::default(), NOW).unwrap();
    let reversed = ["b.svc".to_owned(), "a.svc".to_owned(), "a.svc".to_owned()];
    assert_eq!(certificates.due(&reversed, Observed::default(), NOW), None);
    assert_eq!(certificates.due(&names[..1], Observed::default(), NOW), Some(Change::RenewServing));
}

#[test]
fn certificate_that_ends_with_its_authority_is_not_renewed_again_and_again() {
    let days = Lifetimes::of_days(1);
    let certificates = Certificates::make(&names(), days, NOW).unwrap();
    let announced = certificates.change(Change::Announce, &names(), days, NOW).unwrap();
    // Configurations cannot be written until the end.
    for second in 0..86_400 {
        assert_eq!(announced.due(&names(), Observed::default(), NOW + second), None);
    }
}

/// What an API server or a replica has read, and what it had before.
struct Copy {
    text: String,
    before: String,
    read: i64,
}

impl Copy {
    fn of(text: &str) -> Self {
        Self { text: text.to_owned(), before: text.to_owned(), read: NOW }
    }

    fn read(&mut self, text: &str, now: i64) {
        if self.text != text {
            self.before = std::mem::replace(&mut self.text, text.to_owned());
            self.read = now;
        }
    }
}

struct Rotation {
    rng: Rng,
    now: i64,
    certificates: Certificates,
    observed: Observed,
    changes: Vec<Change>,
    bundles: Vec<Copy>,
    serving: Vec<Copy>,
    /// Pairs of a bundle and a certificate that were checked a short time ago.
    trusted: BTreeSet<(String, String)>,
}

impl Rotation {
    const LIFETIMES: Lifetimes = Lifetimes { authority: 60_000, serving: 20_000 };

    fn new(seed: u64) -> Self {
        let certificates = Certificates::make(&names(), Self::LIFETIMES, NOW).unwrap();
        let bundle = certificates.bundle();
        let serving = certificates.serving().certificate().to_owned();
        Self {
            rng: Rng::with_seed(seed),
            now: NOW,
            certificates,
            observed: Observed::default(),
            changes: Vec::new(),
            bundles: (0..2).map(|_| Copy::of(&bundle)).collect(),
            serving: (0..3).map(|_| Copy::of(&serving)).collect(),
            trusted: BTreeSet::new(),
        }
    }

    fn step(&mut self) {
        self.now += self.rng.i64(1..60);
        let (bundle, now) = (self.certificates.bundle(), self.now);
        let serving = self.certificates.serving().certificate().to_owned();
        match self.rng.usize(..8) {
            0..=2 => {
                let at = self.rng.usize(..self.bundles.len());
                self.bundles[at].read(&bundle, now);
            }
            3..=5 => {
                let at = self.rng.usize(..self.serving.len());
                self.serving[at].read(&serving, now);
            }
            // Another leader, or the same one after a restart: it knows no times.
            6 => {
                self.certificates = read_back(&self.certificates);
                self.observed = Observed::default();
            }
            _ => self.lead(&bundle, &serving),
        }
    }

    fn lead(&mut self, bundle: &str, serving: &str) {
        let (now, before) = (self.now, self.observed);
        let since = |copies: &[Copy], text: &str, before: Option<i64>| {
            copies.iter().all(|it| it.text == text).then(|| before.unwrap_or(now))
        };
        self.observed = Observed {
            bundle_everywhere_since: since(&self.bundles, bundle, before.bundle_everywhere_since),
            serving_everywhere_since: since(
                &self.serving,
                serving,
                before.serving_everywhere_since,
            ),
        };
        if let Some(change) = self.certificates.due(&names(), self.observed, now) {
            let certificates = self.certificates.clone();
            self.certificates =
                certificates.change(change, &names(), Self::LIFETIMES, now).unwrap();
            self.observed = Observed::default();
            self.changes.push(change);
        }
    }

    /// Whether each API server trusts each replica. An API server may use what it had before for
    /// half a minute.
    fn is_trusted(&mut self, checks_again: bool) -> bool {
        if checks_again {
            self.trusted.clear();
        }
        for bundle in &self.bundles {
            let is_new = self.now - bundle.read < 30;
            let bundle = if is_new { &bundle.before } else { &bundle.text };
            for serving in &self.serving {
                let pair = (bundle.clone(), serving.text.clone());
                if !self.trusted.contains(&pair) && !is_trusted(&pair.0, &pair.1, NAME, self.now) {
                    return false;
                }
                self.trusted.insert(pair);
            }
        }
        true
    }
}

#[test]
fn every_api_server_trusts_every_replica_at_each_step() {
    for seed in 0..8 {
        let mut rotation = Rotation::new(seed);
        for step in 0.. {
            rotation.step();
            let is_trusted = rotation.is_trusted(step % 100 == 0);
            let (changes, after) = (&rotation.changes, rotation.now - NOW);
            assert!(is_trusted, "seed {seed}, after {after} s: {changes:?}");
            if after > 120_000 {
                break;
            }
        }
        let changes = &rotation.changes;
        assert!(changes.contains(&Change::DropPrevious), "seed {seed}: {changes:?}");
        assert!(!changes.contains(&Change::Replace), "seed {seed}: {changes:?}");
    }
}
