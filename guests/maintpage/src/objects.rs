use innkeeper_sdk::kinds::{Container, Deployment, Pod, PodTemplate, Probe, Service};

use crate::MaintPage;
use crate::names::{PAGE, page_name};
use crate::side::Side;

/// The port of the Service and of both containers.
const PORT: u16 = 8080;

/// Returns the maintenance Pod.
pub(crate) fn page(page: &MaintPage, with_probe: bool) -> Pod {
    let image = &page.spec.maintpageconfig.maintpageimage;
    let container = if with_probe { probed(PAGE, image) } else { Container::new(PAGE, image) };
    let template = PodTemplate::new(&Side::Page.labels(page)).container(container);
    Pod::new(page_name(&page.metadata.name), template)
}

/// Returns the Deployment of the application.
pub(crate) fn app(page: &MaintPage) -> Deployment {
    let app = &page.spec.appconfig;
    let labels = Side::App.labels(page);
    let template = PodTemplate::new(&labels).container(probed(&app.appname, &app.appimage));
    Deployment::new(&app.appname, &labels, template).replicas(1)
}

/// Returns the Service that routes to one side.
pub(crate) fn service(page: &MaintPage, side: Side) -> Service {
    Service::new(&page.spec.appconfig.appname, &side.labels(page))
        .named_port("8080-tcp", PORT, PORT)
}

/// Returns a container with a readiness probe. Without one its pod would be ready when it has
/// started, and the Service would route to it before it listens.
fn probed(name: &str, image: &str) -> Container {
    Container::new(name, image).readiness_probe(Probe::tcp(PORT).period_seconds(2))
}
