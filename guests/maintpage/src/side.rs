use innkeeper_sdk::{Labels, Observed, ReadinessState, labels, read};

use crate::MaintPage;
use crate::objects::{PAGE, page_name};

/// The two that the Service can route to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The maintenance page.
    Page,
    /// The application.
    App,
}

impl Side {
    /// The side that the user wants.
    pub(crate) fn wanted(page: &MaintPage) -> Self {
        if page.spec.maintpageconfig.maintpagetoggle { Self::Page } else { Self::App }
    }

    /// The side that the Service routes to now; `None` if there is no Service, or if somebody
    /// made it select something else.
    pub(crate) fn routed(observed: &Observed<MaintPage>) -> Option<Self> {
        let page = observed.primary();
        let service = observed.owned::<read::Service>(&page.spec.appconfig.appname)?;
        let selector = service.object.spec.selector;
        [Self::Page, Self::App].into_iter().find(|side| side.labels(page) == selector)
    }

    /// The labels of its pods.
    pub(crate) fn labels(self, page: &MaintPage) -> Labels {
        match self {
            Self::Page => labels([("app", &page.metadata.name)]),
            Self::App => labels([("app", &page.spec.appconfig.appname)]),
        }
    }

    /// Whether somebody answers there.
    pub(crate) fn answers(self, observed: &Observed<MaintPage>) -> bool {
        match self {
            Self::Page => {
                let pod = observed.owned::<read::Pod>(&page_name(observed.name()));
                pod.is_some_and(|pod| {
                    // What the Pod says of itself may be older than its spec: the readiness
                    // knows.
                    pod.object.is_serving() && pod.readiness.state == ReadinessState::Ready
                })
            }
            Self::App => {
                let name = &observed.primary().spec.appconfig.appname;
                // Not the readiness: while a new image is rolled out, the old one answers.
                observed
                    .owned::<read::Deployment>(name)
                    .is_some_and(|deployment| deployment.object.status.available_replicas > 0)
            }
        }
    }

    /// Whether it may take the requests over: somebody answers there, and with what is wanted.
    /// A page of another image is about to be restarted.
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

    /// What it is called in sentences.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Page => "the maintenance page",
            Self::App => "the application",
        }
    }
}

/// Where the Service shall route to.
///
/// To the wanted side, but for one case: the other side has the requests and answers them,
/// and the wanted one cannot take over yet. Moving then would lose requests that need not be
/// lost. Where nobody answers there is nothing to lose, so it moves at once; and once it has
/// moved it stays, also when the page is not ready for a while, since whoever asked for
/// maintenance does not want users in the application.
pub(crate) fn route(observed: &Observed<MaintPage>) -> Side {
    let wanted = Side::wanted(observed.primary());
    match Side::routed(observed) {
        Some(now) if now != wanted && now.answers(observed) && !wanted.may_take_over(observed) => {
            now
        }
        _ => wanted,
    }
}
