use innkeeper_sdk::{Labels, Observed, ReadinessState, labels, read};

use crate::names::{PAGE, page_name};
use crate::{MaintPage, Switch};

/// A side that the Service can route to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The maintenance page.
    Page,
    /// The application.
    App,
}

impl Side {
    /// Returns the desired side, by the toggle.
    pub(crate) fn wanted(page: &MaintPage) -> Self {
        if page.spec.maintpageconfig.maintpagetoggle { Self::Page } else { Self::App }
    }

    /// Returns the side that the Service routes to; `None` if the Service does not exist or has
    /// another selector.
    pub(crate) fn routed(observed: &Observed<MaintPage>) -> Option<Self> {
        let page = observed.primary();
        let service = observed.owned::<read::Service>(&page.spec.appconfig.appname)?;
        let selector = service.object.spec.selector;
        [Self::Page, Self::App].into_iter().find(|side| side.labels(page) == selector)
    }

    /// Returns the labels of the pods.
    pub(crate) fn labels(self, page: &MaintPage) -> Labels {
        match self {
            Self::Page => labels([("app", &page.metadata.name)]),
            Self::App => labels([("app", &page.spec.appconfig.appname)]),
        }
    }

    /// Returns whether a pod of this side accepts connections.
    pub(crate) fn answers(self, observed: &Observed<MaintPage>) -> bool {
        match self {
            Self::Page => {
                let pod = observed.owned::<read::Pod>(&page_name(observed.name()));
                pod.is_some_and(|pod| {
                    // The Pod's status may be older than its spec; the readiness considers that.
                    pod.object.is_serving() && pod.readiness.state == ReadinessState::Ready
                })
            }
            Self::App => {
                let name = &observed.primary().spec.appconfig.appname;
                // Not the readiness: during a rollout the pods with the former image serve.
                observed
                    .owned::<read::Deployment>(name)
                    .is_some_and(|deployment| deployment.object.status.available_replicas > 0)
            }
        }
    }

    /// Returns whether the Service can switch to this side: a pod accepts connections and, for the
    /// page, has the desired image. A page with another image is about to restart.
    fn may_take_over(self, observed: &Observed<MaintPage>) -> bool {
        self.answers(observed)
            && match self {
                Self::App => true,
                Self::Page => {
                    let image = &observed.primary().spec.maintpageconfig.maintpageimage;
                    let pod = observed.owned::<read::Pod>(&page_name(observed.name()));
                    let container = pod.as_ref().and_then(|pod| pod.object.container(PAGE));
                    container.is_some_and(|container| container.image == *image)
                }
            }
    }

    /// Returns the name for messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Page => "the maintenance page",
            Self::App => "the application",
        }
    }
}

/// Returns the side that the Service should route to.
///
/// With [`Switch::Immediately`] that is always the desired side, as in the original operator.
///
/// Otherwise it is the desired side, except while the current side serves and the desired one
/// cannot take over: switching then would lose requests. If neither side serves, the Service
/// switches at once. After the switch it stays on the desired side even if that side becomes
/// unready, because during maintenance users must not reach the application.
pub(crate) fn route(observed: &Observed<MaintPage>, switch: Switch) -> Side {
    let wanted = Side::wanted(observed.primary());
    if switch == Switch::Immediately {
        return wanted;
    }
    match Side::routed(observed) {
        Some(now) if now != wanted && now.answers(observed) && !wanted.may_take_over(observed) => {
            now
        }
        _ => wanted,
    }
}
