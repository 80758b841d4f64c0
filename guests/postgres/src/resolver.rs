use innkeeper_sdk::{Context, Observed, ReadError};

use crate::PostgreSQL;
use crate::claim::Claim;
use crate::consent::{Consent, LEAVE_ANNOTATION};
use crate::deployed::Deployed;
use crate::last_copy::LastCopy;
use crate::problem::Problem;
use crate::safety::{Danger, Safety};
use crate::volume_source::VolumeSource;
use crate::volumes::{BACKUPS, DATA};

/// How a user puts the data on a claim.
const NOT_EPHEMERAL: &str = "wait for a backup, set ephemeral to false in spec.storage or in the Module's spec.parameters.storage";

/// One volume.
pub(crate) struct ResolvedVolume {
    /// The source; `None` if no server can start on it.
    pub(crate) source: Option<VolumeSource>,
    /// What a person has to do.
    pub(crate) problem: Option<Problem>,
    /// The claim that the volume leaves.
    pub(crate) left: Option<String>,
    /// That the claim has no volume.
    pub(crate) unbound: Option<String>,
}

/// What the resolution of both volumes reads.
pub(crate) struct Resolver<'a> {
    /// The cluster.
    pub(crate) context: &'a Context<'a>,
    /// The observed state.
    pub(crate) observed: &'a Observed<'a, PostgreSQL>,
    /// The Deployment.
    pub(crate) deployed: Option<&'a Deployed>,
    /// The claims that may be left.
    pub(crate) consent: &'a Consent,
}

impl Resolver<'_> {
    /// Returns what is lost if the data leaves its volume.
    ///
    /// # Errors
    /// If a claim cannot be read.
    pub(crate) fn safety_of_backups(&self, own: &str) -> Result<Safety, ReadError> {
        let Some(claim) = self.previous(BACKUPS, own)? else { return Ok(Safety::default()) };
        let why = why_gone(&claim, self.claim(&claim)?.as_ref());
        let first = "wait until the backups are on another claim and a backup was made".to_owned();
        let danger = why.map(|why| Danger { why: format!("{why}, with the backups"), first });
        Ok(Safety { danger, wait: None, has_pods: self.deployed.is_some() })
    }

    /// Returns what is lost if the backups leave their volume, with this source of the data.
    ///
    /// # Errors
    /// If a claim cannot be read.
    pub(crate) fn safety_of_data(
        &self,
        own: &str,
        source: Option<&VolumeSource>,
    ) -> Result<Safety, ReadError> {
        let deployed = self.deployed(DATA, own)?;
        let source = source.or(deployed.as_ref());
        let danger = |why: String, first: &str| Safety {
            danger: Some(Danger {
                why,
                first: format!("{first}, and wait until Ready is True and a backup was made"),
            }),
            wait: None,
            has_pods: self.deployed.is_some(),
        };
        let Some(claim) = source.and_then(VolumeSource::claim) else {
            return Ok(danger("the data is in the pod".to_owned(), NOT_EPHEMERAL));
        };
        let has_moved = self.deployed.is_some()
            && deployed.as_ref().and_then(VolumeSource::claim) != Some(claim);
        let stay = "keep the data on its claim";
        if has_moved {
            return Ok(danger("the data moves in the same rollout".to_owned(), stay));
        }
        let found = self.claim(claim)?;
        if let Some(why) = why_gone(claim, found.as_ref()) {
            return Ok(danger(format!("{why}, with the data"), stay));
        }
        let is_in_use = match self.deployed {
            Some(_) => self.observed.is_ready::<Deployed>(self.observed.name()),
            None => found.is_some_and(|found| found.is_bound()),
        };
        let wait =
            || "the server is not ready on its data yet: wait until Ready is True".to_owned();
        Ok(Safety {
            danger: None,
            wait: (!is_in_use).then(wait),
            has_pods: self.deployed.is_some(),
        })
    }

    /// Resolves one volume.
    ///
    /// # Errors
    /// If a claim cannot be read.
    pub(crate) fn resolve(
        &self,
        volume: &str,
        own: &str,
        desired: Result<VolumeSource, Problem>,
        safety: &Safety,
    ) -> Result<ResolvedVolume, ReadError> {
        let desired = match desired {
            Ok(desired) => desired,
            Err(problem) => return Ok(ResolvedVolume::without_source(problem)),
        };
        let own_claim = self.claim(own)?;
        let is_own_made = own_claim.as_ref().is_some_and(|claim| self.is_made(own, claim));
        let desired = match desired {
            // The user names the claim that the guest has created.
            VolumeSource::Existing(name) if name == own && is_own_made => {
                VolumeSource::Own { name, class: None }
            }
            desired => desired,
        };
        let left = self.previous(volume, own)?.filter(|previous| desired.claim() != Some(previous));
        if let Some(previous) = &left
            && let Some(stay) = self.stay(volume, own, previous, safety)?
        {
            return Ok(stay);
        }
        if desired.claim().is_some()
            && self.deployed.is_some_and(|deployed| deployed.is_ephemeral(volume))
            && let Some(Danger { why, .. }) = safety.last_copy()
        {
            let message = format!(
                "the data stays in the pod, against the spec or the Module's parameters: {why}; {}",
                self.last_copy().advice(None),
            );
            let problem = Problem::other_volume("LastCopyInPod", message);
            return Ok(ResolvedVolume::on(VolumeSource::Ephemeral, Some(problem)));
        }
        let resolved = match desired {
            VolumeSource::Own { name, class } => {
                self.new_claim(volume, &name, class, own_claim.as_ref(), safety)
            }
            VolumeSource::Existing(name) => {
                let advice = safety.last_copy().map(|_| self.last_copy().advice(None));
                existing(&name, self.claim(&name)?.as_ref(), advice.as_deref())
            }
            VolumeSource::Ephemeral => ResolvedVolume::on(VolumeSource::Ephemeral, None),
        };
        Ok(ResolvedVolume { left, ..resolved })
    }

    /// Returns the claim that has the content of the volume.
    fn previous(&self, volume: &str, own: &str) -> Result<Option<String>, ReadError> {
        let Some(deployed) = self.deployed else {
            let found = self.claim(own)?.filter(|claim| self.is_made(own, claim));
            return Ok(found.map(|_| own.to_owned()));
        };
        Ok(deployed.claim(volume).map(str::to_owned))
    }

    /// The volume stays on the claim that has its content, until a person deletes the claim or
    /// allows leaving it, and as long as it may be the only copy of the rows.
    fn stay(
        &self,
        volume: &str,
        own: &str,
        claim: &str,
        safety: &Safety,
    ) -> Result<Option<ResolvedVolume>, ReadError> {
        let found = self.claim(claim)?;
        let may_leave = self.consent.permits(claim);
        let why = match &found {
            // There is nothing to lose but the rows in the pod.
            None => match safety.last_copy().filter(|_| volume == BACKUPS && !may_leave) {
                Some(Danger { why, .. }) => format!(
                    "the claim does not exist, and {why}; create the claim, or save the rows with `{}` and run `{}`",
                    self.last_copy().save,
                    self.annotate(claim),
                ),
                None => return Ok(None),
            },
            Some(found) if found.is_terminating() => match safety.last_copy() {
                Some(Danger { why, .. }) => format!(
                    "the claim is being deleted, and {why}; {}",
                    self.last_copy().advice(None)
                ),
                None => return Ok(None),
            },
            Some(_) => match (&safety.danger, &safety.wait) {
                (Some(Danger { why, first }), _) => format!(
                    "{why}, so that a new pod elsewhere would have no rows: first {first}; only then leave the claim",
                ),
                (None, Some(wait)) if may_leave => wait.clone(),
                _ if may_leave => return Ok(None),
                _ => self.how_to_leave(volume, claim),
            },
        };
        let message = format!(
            "{} on PersistentVolumeClaim {claim}, against the spec or the Module's parameters: {why}",
            if volume == DATA { "the data stays" } else { "the backups stay" },
        );
        let source = self.source(own, claim, found.as_ref());
        Ok(Some(ResolvedVolume::on(source, Some(Problem::other_volume("ClaimInUse", message)))))
    }

    fn how_to_leave(&self, volume: &str, claim: &str) -> String {
        if self.consent.is_spent(claim) {
            return format!(
                "the volume has left this claim once, and a consent permits one move: run `kubectl annotate pg {} {LEAVE_ANNOTATION}-`, and this message will say how to leave the claim again",
                self.observed.name(),
            );
        }
        let why = if volume == DATA {
            "a new pod elsewhere would have the rows of the newest backup on the present claim of the backups only"
        } else {
            "the existing backups would not be found elsewhere"
        };
        format!("{why}; to leave the claim, wait for a backup, then run `{}`", self.annotate(claim))
    }

    fn annotate(&self, claim: &str) -> String {
        let name = self.observed.name();
        format!("kubectl annotate pg {name} {LEAVE_ANNOTATION}={claim} --overwrite")
    }

    fn last_copy(&self) -> LastCopy {
        LastCopy::of(self.observed.primary())
    }

    /// A claim that the guest creates.
    fn new_claim(
        &self,
        volume: &str,
        name: &str,
        class: Option<String>,
        found: Option<&Claim>,
        safety: &Safety,
    ) -> ResolvedVolume {
        let problem = found
            .and_then(|claim| self.problem_of_own(volume, name, class.as_deref(), claim, safety));
        // The class of a claim is immutable: the API server refuses another one, and none.
        let class = found.and_then(Claim::class).map(str::to_owned).or(class);
        ResolvedVolume {
            source: Some(VolumeSource::Own { name: name.to_owned(), class }),
            problem,
            left: None,
            unbound: unbound(name, found),
        }
    }

    fn problem_of_own(
        &self,
        volume: &str,
        name: &str,
        class: Option<&str>,
        claim: &Claim,
        safety: &Safety,
    ) -> Option<Problem> {
        let pods = self.delete_pod();
        let last_copy = safety.last_copy();
        let wait = if volume == DATA { "wait for a backup, then " } else { "" };
        if claim.is_terminating() {
            let what = match last_copy {
                Some(Danger { why, .. }) => format!("{why}; {}", self.last_copy().advice(None)),
                None => format!("it goes with the pod that uses it: {wait}run `{pods}`"),
            };
            return Some(Problem::other_volume(
                "ClaimTerminating",
                format!("PersistentVolumeClaim {name} is being deleted, and {what}"),
            ));
        }
        if claim.is_lost() {
            let what = match last_copy {
                Some(Danger { why, .. }) => {
                    let delete = format!("kubectl delete pvc {name} --wait=false");
                    format!(", and {why}; {}", self.last_copy().advice(Some(&delete)))
                }
                None => {
                    format!(": {wait}run `kubectl delete pvc {name}` and `{pods}` for a new volume")
                }
            };
            return Some(Problem::pod_pending(
                "ClaimLost",
                format!("the volume of PersistentVolumeClaim {name} does not exist any more{what}"),
            ));
        }
        if claim.lacks_class() && class.is_none() {
            let field = if volume == DATA {
                "spec.storage"
            } else {
                "spec.storage.className or spec.backup"
            };
            return Some(no_class(name, &format!("set {field}.className")));
        }
        let has = claim.class()?;
        // Without a class in spec and parameters, each class is one that the user accepts.
        let other = class.filter(|class| *class != has)?;
        Some(self.class_unchanged(volume, name, (has, other), safety))
    }

    /// The class of a claim is another one than the spec or the parameters say.
    fn class_unchanged(
        &self,
        volume: &str,
        name: &str,
        (has, other): (&str, &str),
        safety: &Safety,
    ) -> Problem {
        let loses = if volume == DATA {
            "the new volume has the rows of the newest backup"
        } else {
            "the existing backups are deleted with the claim"
        };
        let what = match safety.last_copy() {
            Some(Danger { why, first }) => format!(
                "{why}, so to change it, first save the rows with `{}`, or {first}",
                self.last_copy().save,
            ),
            None => format!(
                "wait for a backup and run `kubectl delete pvc {name} --wait=false` and `{}`; {loses}",
                self.delete_pod(),
            ),
        };
        Problem::other_volume(
            "ClassUnchanged",
            format!(
                "PersistentVolumeClaim {name} has the storage class {has}, which cannot change to {other}: set className to {has}, or {what}",
            ),
        )
    }

    fn delete_pod(&self) -> String {
        format!("kubectl delete pod -l name={}", self.observed.name())
    }

    /// The source of a volume of the deployed pods.
    ///
    /// # Errors
    /// If a claim cannot be read.
    pub(crate) fn deployed(
        &self,
        volume: &str,
        own: &str,
    ) -> Result<Option<VolumeSource>, ReadError> {
        let Some(deployed) = self.deployed else { return Ok(None) };
        if deployed.is_ephemeral(volume) {
            return Ok(Some(VolumeSource::Ephemeral));
        }
        let Some(name) = deployed.claim(volume) else { return Ok(None) };
        let claim = self.claim(name)?;
        Ok(Some(self.source(own, name, claim.as_ref())))
    }

    fn source(&self, own: &str, name: &str, claim: Option<&Claim>) -> VolumeSource {
        match claim {
            Some(claim) if name == own && self.is_made(own, claim) => {
                VolumeSource::Own { name: name.to_owned(), class: claim.class().map(str::to_owned) }
            }
            // With another source the pods would be replaced.
            None if name == own => VolumeSource::Own { name: name.to_owned(), class: None },
            _ => VolumeSource::Existing(name.to_owned()),
        }
    }

    /// Whether the claim of the guest's own name is one that the guest made.
    fn is_made(&self, name: &str, claim: &Claim) -> bool {
        let uid = &self.observed.primary().metadata.uid;
        claim.is_made_by(uid) || self.observed.owned::<Claim>(name).is_some()
    }

    fn claim(&self, name: &str) -> Result<Option<Claim>, ReadError> {
        Claim::read(self.context, self.observed, name)
    }
}

impl ResolvedVolume {
    fn on(source: VolumeSource, problem: Option<Problem>) -> Self {
        Self { source: Some(source), problem, left: None, unbound: None }
    }

    fn without_source(problem: Problem) -> Self {
        Self { source: None, problem: Some(problem), left: None, unbound: None }
    }
}

/// Why the content of a claim is not there for a later pod.
fn why_gone(name: &str, claim: Option<&Claim>) -> Option<String> {
    let why = match claim {
        None => "does not exist",
        Some(claim) if claim.is_terminating() => "is being deleted",
        Some(claim) if claim.is_lost() => "has lost its volume",
        Some(_) => return None,
    };
    Some(format!("PersistentVolumeClaim {name} {why}"))
}

/// A claim that the guest neither creates nor deletes. `advice`: what to do before the pod that
/// has the only copy of the rows is replaced.
fn existing(name: &str, claim: Option<&Claim>, advice: Option<&str>) -> ResolvedVolume {
    let stopped = |reason, message: String| {
        let message = match advice {
            Some(advice) => format!("{message}; {advice}"),
            None => message,
        };
        ResolvedVolume::without_source(Problem::no_volume(reason, message))
    };
    let Some(claim) = claim else {
        return stopped(
            "ClaimMissing",
            format!("there is no PersistentVolumeClaim {name}: create it, or leave out claimName"),
        );
    };
    if let Some(owner) = claim.owner() {
        return stopped(
            "ClaimOfAnother",
            format!(
                "PersistentVolumeClaim {name} belongs to {owner}: name a claim that nobody else manages",
            ),
        );
    }
    if claim.is_terminating() {
        return stopped(
            "ClaimTerminating",
            format!("PersistentVolumeClaim {name} is being deleted: name another one"),
        );
    }
    if claim.is_lost() {
        return stopped(
            "ClaimLost",
            format!(
                "the volume of PersistentVolumeClaim {name} does not exist any more: name another claim",
            ),
        );
    }
    ResolvedVolume {
        source: Some(VolumeSource::Existing(name.to_owned())),
        problem: claim
            .lacks_class()
            .then(|| no_class(name, "create the claim with spec.storageClassName")),
        left: None,
        unbound: unbound(name, Some(claim)),
    }
}

fn no_class(claim: &str, what_to_do: &str) -> Problem {
    Problem::pod_pending(
        "NoStorageClass",
        format!(
            "PersistentVolumeClaim {claim} waits for a volume: it has no storage class, and none is the cluster's default; {what_to_do} to one that `kubectl get storageclass` shows, or make one the default",
        ),
    )
}

fn unbound(name: &str, claim: Option<&Claim>) -> Option<String> {
    let Some(claim) = claim else {
        return Some(format!("PersistentVolumeClaim {name} does not exist yet"));
    };
    if claim.is_bound() {
        return None;
    }
    let class =
        claim.class().map(|class| format!(" of the storage class {class}")).unwrap_or_default();
    Some(format!(
        "PersistentVolumeClaim {name}{class} has no volume yet; if that lasts, `kubectl describe pvc {name}` says why, and `kubectl get storageclass` shows the classes",
    ))
}
