use innkeeper_sdk::{Condition, Context, Observed, ReadError, Resource as _, condition};

use crate::claim::Claim;
use crate::deployed::{Deployed, DeployedVolume};
use crate::parameters::Parameters;
use crate::placement::{self, Place};
use crate::problem::Problem;
use crate::volumes::{BACKUPS, DATA, Source, Volumes};
use crate::{Names, PostgreSQL};

/// The annotation of a `PostgreSQL` that names claims whose content its volumes may leave behind.
pub const LEAVE_ANNOTATION: &str = "exp.wheel.jp/leave-claim";

/// The volumes of a `PostgreSQL`, from its spec, the Module's parameters and the observed claims.
pub(crate) struct Storage {
    /// The volumes; `None` while no server may start.
    pub(crate) volumes: Option<Volumes>,
    /// What a person has to do.
    pub(crate) problem: Option<Problem>,
    /// A claim without a volume.
    unbound: Option<String>,
}

/// One volume.
struct Resolved {
    source: Option<Source>,
    problem: Option<Problem>,
    unbound: Option<String>,
}

/// What the resolution of both volumes reads.
struct Resolver<'a> {
    context: &'a Context<'a>,
    observed: &'a Observed<'a, PostgreSQL>,
    deployed: Option<&'a Deployed>,
}

impl Storage {
    /// Resolves the volumes.
    ///
    /// # Errors
    /// If a claim cannot be read.
    pub(crate) fn resolve(
        context: &Context,
        observed: &Observed<PostgreSQL>,
        names: &Names,
        parameters: &Parameters,
        deployed: Option<&Deployed>,
    ) -> Result<Self, ReadError> {
        let (postgres, resolver) = (observed.primary(), Resolver { context, observed, deployed });
        let data = resolver.resolve(DATA, &names.data, placement::of_data(postgres, parameters))?;
        let backups = resolver.resolve(
            BACKUPS,
            &names.backups,
            placement::of_backups(postgres, parameters),
        )?;
        let mut problem = worse(data.problem, backups.problem);
        let mut volumes = data.source.zip(backups.source);
        if let Some((data, backups)) = &volumes
            && let (Some(claim), Some(other)) = (data.claim(), backups.claim())
            && claim == other
        {
            problem = Some(Problem::stops(
                "SameClaim",
                format!(
                    "data and backups are on the same PersistentVolumeClaim {claim}, so that one lost volume loses both: give each its own claim",
                ),
            ));
            volumes = None;
        }
        if problem.as_ref().is_some_and(|problem| !problem.has_volumes) {
            // The server that runs keeps its volumes.
            volumes = resolver
                .deployed(DATA, &names.data)?
                .zip(resolver.deployed(BACKUPS, &names.backups)?);
        }
        Ok(Self {
            volumes: volumes.map(|(data, backups)| Volumes { data, backups }),
            problem,
            unbound: data.unbound.or(backups.unbound),
        })
    }

    /// Returns the problem with which no server can start.
    pub(crate) fn stopped(&self) -> Option<&Problem> {
        self.problem.as_ref().filter(|problem| problem.stops)
    }

    /// Returns the conditions `StorageReady` and `DataPersistent`.
    pub(crate) fn conditions(&self) -> Vec<Condition> {
        const TYPE: &str = "StorageReady";
        let ready = match (&self.problem, &self.unbound, &self.volumes) {
            (Some(problem), ..) => problem.condition(TYPE),
            (None, Some(message), _) => condition::is_false(TYPE, "NotBound", message.clone()),
            (None, None, Some(volumes)) => condition::is_true(
                TYPE,
                "Bound",
                format!("the data is {}, and the backups are {}", volumes.data, volumes.backups),
            ),
            (None, None, None) => {
                condition::unknown(TYPE, "Unresolved", "the volumes are not known")
            }
        };
        let persistent = match &self.volumes {
            None => condition::unknown("DataPersistent", "NoVolumes", "no server may start yet"),
            Some(Volumes { data: Source::Ephemeral, .. }) => condition::is_false(
                "DataPersistent",
                "InPod",
                "the data is in the pod and is deleted with it: a new pod restores the newest backup, and the rows written since that backup are lost; to keep them, set ephemeral to false in spec.storage or in the Module's spec.parameters.storage",
            ),
            Some(Volumes { data, .. }) => {
                condition::is_true("DataPersistent", "OnClaim", format!("the data is {data}"))
            }
        };
        vec![ready, persistent]
    }
}

/// The problem that a person has to solve first.
fn worse(one: Option<Problem>, other: Option<Problem>) -> Option<Problem> {
    let rank = |problem: &Problem| (problem.has_volumes, !problem.stops);
    one.into_iter().chain(other).min_by_key(rank)
}

impl Resolver<'_> {
    fn resolve(
        &self,
        volume: &str,
        own: &str,
        place: Result<Place, Problem>,
    ) -> Result<Resolved, ReadError> {
        let place = match place {
            Ok(place) => place,
            Err(problem) => return Ok(Resolved::stopped(problem)),
        };
        let own_claim = self.claim(own)?;
        let made = own_claim.as_ref().filter(|claim| self.is_made(own, claim));
        let place = match place {
            // Its own claim under its name.
            Place::Claim(name) if name == own && made.is_some() => {
                Place::New(made.and_then(Claim::class).map(str::to_owned))
            }
            place => place,
        };
        let wanted = match &place {
            Place::New(_) => Some(own),
            Place::Claim(name) => Some(name.as_str()),
            Place::Ephemeral => None,
        };
        let previous = match self.deployed {
            Some(deployed) => match deployed.volume(volume) {
                Some(DeployedVolume::Claim(name)) => Some(name),
                _ => None,
            },
            None => made.map(|_| own.to_owned()),
        };
        if let Some(previous) = previous
            && wanted != Some(&previous)
            && let Some(stay) = self.stay(volume, own, &previous)?
        {
            return Ok(stay);
        }
        match place {
            Place::New(class) => Ok(self.new_claim(volume, own, class, own_claim.as_ref())),
            Place::Claim(name) => Ok(existing(&name, self.claim(&name)?.as_ref())),
            Place::Ephemeral => {
                Ok(Resolved { source: Some(Source::Ephemeral), problem: None, unbound: None })
            }
        }
    }

    /// The volume stays on the claim that has its content, until a person deletes the claim or
    /// allows leaving it.
    fn stay(&self, volume: &str, own: &str, claim: &str) -> Result<Option<Resolved>, ReadError> {
        let annotation = self.observed.primary().metadata.annotations.get(LEAVE_ANNOTATION);
        let may_leave =
            annotation.is_some_and(|claims| claims.split(',').any(|one| one.trim() == claim));
        let found = self.claim(claim)?.filter(|found| !may_leave && !found.is_terminating());
        let Some(found) = found else { return Ok(None) };
        let why = if volume == DATA {
            "a new pod elsewhere would have the rows of the newest backup only"
        } else {
            "the existing backups would not be found elsewhere"
        };
        let problem = Problem::remains(
            "ClaimInUse",
            format!(
                "the {volume} stays on PersistentVolumeClaim {claim}, against the spec or the Module's parameters: {why}; to leave the claim, wait for a backup, then run `kubectl annotate pg {} {LEAVE_ANNOTATION}={claim}`",
                self.observed.name(),
            ),
        );
        Ok(Some(Resolved {
            source: Some(self.source(own, claim, Some(&found))),
            problem: Some(problem),
            unbound: None,
        }))
    }

    /// A claim that the guest creates.
    fn new_claim(
        &self,
        volume: &str,
        name: &str,
        class: Option<String>,
        found: Option<&Claim>,
    ) -> Resolved {
        let (has, problem) = match found {
            None => (None, None),
            Some(claim) => {
                (claim.class(), self.problem_of_new(volume, name, class.as_deref(), claim))
            }
        };
        // The class of a claim is immutable, and an apply with another one would fail.
        let class = class.map(|class| has.map_or(class, str::to_owned));
        Resolved {
            source: Some(Source::Own { name: name.to_owned(), class }),
            problem,
            unbound: unbound(name, found),
        }
    }

    fn problem_of_new(
        &self,
        volume: &str,
        name: &str,
        class: Option<&str>,
        claim: &Claim,
    ) -> Option<Problem> {
        let pods = format!("kubectl delete pod -l name={}", self.observed.name());
        if claim.is_terminating() {
            return Some(Problem::remains(
                "ClaimTerminating",
                format!(
                    "PersistentVolumeClaim {name} is being deleted, and goes with the pod that uses it: run `{pods}`",
                ),
            ));
        }
        if claim.is_lost() {
            return Some(Problem::waits(
                "ClaimLost",
                format!(
                    "the volume of PersistentVolumeClaim {name} does not exist any more: run `kubectl delete pvc {name}` and `{pods}` for a new volume",
                ),
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
        let is_unapplied = || {
            self.observed.unapplied().iter().any(|unapplied| {
                unapplied.reference.kind == Claim::KIND && unapplied.reference.name == name
            })
        };
        let has = claim.class()?;
        let differs = match class {
            Some(class) => class != has,
            // The field has been removed from the spec, which the API server refuses for a claim.
            None => is_unapplied(),
        };
        let loses = if volume == DATA {
            "the new volume has the rows of the newest backup"
        } else {
            "the existing backups are deleted with the claim"
        };
        differs.then(|| Problem::remains("ClassUnchanged", format!(
            "PersistentVolumeClaim {name} has the storage class {has}, which cannot change{}: set className to {has}, or wait for a backup and run `kubectl delete pvc {name} --wait=false` and `{pods}`; {loses}",
            class.map(|class| format!(" to {class}")).unwrap_or_default(),
        )))
    }

    /// The source of a volume of the deployed pods.
    fn deployed(&self, volume: &str, own: &str) -> Result<Option<Source>, ReadError> {
        let Some(deployed) = self.deployed.and_then(|deployed| deployed.volume(volume)) else {
            return Ok(None);
        };
        match deployed {
            DeployedVolume::Ephemeral => Ok(Some(Source::Ephemeral)),
            DeployedVolume::Claim(name) => {
                let claim = self.claim(&name)?;
                Ok(Some(self.source(own, &name, claim.as_ref())))
            }
        }
    }

    fn source(&self, own: &str, name: &str, claim: Option<&Claim>) -> Source {
        match claim {
            Some(claim) if name == own && self.is_made(own, claim) => {
                Source::Own { name: name.to_owned(), class: claim.class().map(str::to_owned) }
            }
            _ => Source::Existing(name.to_owned()),
        }
    }

    /// Whether the claim of the guest's own name is one that the guest made.
    fn is_made(&self, name: &str, claim: &Claim) -> bool {
        claim.owner().is_some() || self.observed.owned::<Claim>(name).is_some()
    }

    fn claim(&self, name: &str) -> Result<Option<Claim>, ReadError> {
        Claim::read(self.context, self.observed, name)
    }
}

impl Resolved {
    fn stopped(problem: Problem) -> Self {
        Self { source: None, problem: Some(problem), unbound: None }
    }
}

/// A claim that the guest neither creates nor deletes.
fn existing(name: &str, claim: Option<&Claim>) -> Resolved {
    let stopped = |reason, message: String| Resolved::stopped(Problem::stops(reason, message));
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
    Resolved {
        source: Some(Source::Existing(name.to_owned())),
        problem: claim
            .lacks_class()
            .then(|| no_class(name, "create the claim with spec.storageClassName")),
        unbound: unbound(name, Some(claim)),
    }
}

fn no_class(claim: &str, what_to_do: &str) -> Problem {
    Problem::waits(
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
