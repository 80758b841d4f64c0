use innkeeper_sdk::kinds::{Container, Deployment, Pod, PodTemplate, Probe, Service};

use crate::MaintPage;
use crate::side::Side;

/// The container of the maintenance Pod.
pub(crate) const PAGE: &str = "maintpage";

/// The port of everything.
const PORT: u16 = 8080;

/// The name of the maintenance Pod.
pub fn page_name(maintpage: &str) -> String {
    format!("{maintpage}-maintpage-pod")
}

/// The maintenance Pod.
pub(crate) fn page(page: &MaintPage, with_probe: bool) -> Pod {
    let image = &page.spec.maintpageconfig.maintpageimage;
    let container = if with_probe { probed(PAGE, image) } else { Container::new(PAGE, image) };
    let template = PodTemplate::new(&Side::Page.labels(page)).container(container);
    Pod::new(page_name(&page.metadata.name), template)
}

/// The application.
pub(crate) fn app(page: &MaintPage) -> Deployment {
    let app = &page.spec.appconfig;
    let labels = Side::App.labels(page);
    let template = PodTemplate::new(&labels).container(probed(&app.appname, &app.appimage));
    Deployment::new(&app.appname, &labels, template).replicas(1)
}

/// The Service, which routes to one side.
pub(crate) fn service(page: &MaintPage, side: Side) -> Service {
    Service::new(&page.spec.appconfig.appname, &side.labels(page))
        .named_port("8080-tcp", PORT, PORT)
}

/// A container that is ready when it takes connections: the Service moves to pods that are
/// ready, and without a probe a pod is ready as soon as it has started.
fn probed(name: &str, image: &str) -> Container {
    Container::new(name, image).readiness_probe(Probe::tcp(PORT).period_seconds(2))
}
