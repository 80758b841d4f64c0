use innkeeper_sdk::{Condition, Context, Observed, ReadError, condition};

use crate::consent::Consent;
use crate::deployed::Deployed;
use crate::parameters::Parameters;
use crate::problem::{Effect, Problem};
use crate::resolver::Resolver;
use crate::volume_source::VolumeSource;
use crate::volumes::{BACKUPS, DATA, Volumes};
use crate::{Names, PostgreSQL, desired_volumes};

/// The volumes of a `PostgreSQL`, from its spec, the Module's parameters and the observed claims.
pub(crate) struct ResolvedVolumes {
    /// The volumes to desire; `None` while no server may start.
    pub(crate) volumes: Option<Volumes>,
    /// What a person has to do.
    pub(crate) problem: Option<Problem>,
    /// The claims that may be left, with those that the volumes have left.
    pub(crate) consent: Consent,
    /// A claim without a volume.
    unbound: Option<String>,
}

impl ResolvedVolumes {
    /// Resolves the volumes.
    ///
    /// # Errors
    /// If a claim cannot be read.
    pub(crate) fn of(
        context: &Context,
        observed: &Observed<PostgreSQL>,
        names: &Names,
        parameters: &Parameters,
        deployed: Option<&Deployed>,
    ) -> Result<Self, ReadError> {
        let postgres = observed.primary();
        let mut consent = Consent::of(postgres, deployed);
        let resolver = Resolver { context, observed, deployed, consent: &consent };
        let backups = resolver.safety_of_backups(&names.backups)?;
        let desired = desired_volumes::data(postgres, names, parameters);
        let data = resolver.resolve(DATA, &names.data, desired, &backups)?;
        // Backups that may be the only copy of the rows stay.
        let safety = resolver.safety_of_data(&names.data, data.source.as_ref())?;
        let desired = desired_volumes::backups(postgres, names, parameters);
        let backups = resolver.resolve(BACKUPS, &names.backups, desired, &safety)?;
        let left = data.left.into_iter().chain(backups.left);
        let mut problem = worse(data.problem, backups.problem);
        let mut volumes = data.source.zip(backups.source);
        if let Some((data, backups)) = &volumes
            && let (Some(claim), Some(other)) = (data.claim(), backups.claim())
            && claim == other
        {
            problem = Some(Problem::no_volume(
                "SameClaim",
                format!(
                    "data and backups are on the same PersistentVolumeClaim {claim}, so that one lost volume loses both: give each its own claim",
                ),
            ));
            volumes = None;
        }
        if problem.as_ref().is_some_and(|problem| problem.effect == Effect::NoVolume) {
            // The server that runs keeps its volumes.
            volumes = resolver
                .deployed(DATA, &names.data)?
                .zip(resolver.deployed(BACKUPS, &names.backups)?);
        } else {
            consent = consent.spend(left);
        }
        Ok(Self {
            volumes: volumes.map(|(data, backups)| Volumes { data, backups }),
            problem,
            consent,
            unbound: data.unbound.or(backups.unbound),
        })
    }

    /// Returns the problem with which no server can start.
    pub(crate) fn problem_of_start(&self) -> Option<&Problem> {
        self.problem.as_ref().filter(|problem| problem.prevents_start())
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
            Some(Volumes { data: VolumeSource::Ephemeral, .. }) => condition::is_false(
                "DataPersistent",
                "InPod",
                "the data is in the pod and is deleted with it: a new pod restores the newest backup, and the rows written since that backup are lost; to change that, wait for a backup and set ephemeral to false in spec.storage or in the Module's spec.parameters.storage",
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
    one.into_iter().chain(other).min_by_key(|problem| problem.effect)
}
