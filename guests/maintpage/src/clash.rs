use innkeeper_sdk::{Context, Labels, Observed, ReadError, read};

use crate::MaintPage;
use crate::names::page_name;

/// Returns, for people, which pods of another owner carry the label of one of the two sides, so
/// that the Service would route to them too; `None` if there are none.
///
/// Both sides have the label `app`: the page with the `MaintPage`'s name, the application with its
/// own. So the names of applications and `MaintPages` must differ in a namespace. The guest checks
/// existing objects, so the older `MaintPage` is not affected.
///
/// # Errors
/// If the Deployment or the Pod cannot be read.
pub(crate) fn find(
    context: &Context,
    observed: &Observed<MaintPage>,
) -> Result<Option<String>, ReadError> {
    let (namespace, name) = (observed.namespace(), observed.name());
    let appname = &observed.primary().spec.appconfig.appname;

    let application = or_none(context.get::<read::Deployment>(namespace, name))?;
    if application.is_some_and(|one| has_app(&one.spec.template.metadata.labels, name)) {
        return Ok(Some(format!(
            "there is a Deployment {name} in the namespace, whose pods carry the label app={name} of the maintenance page; give the MaintPage another name"
        )));
    }
    let page = page_name(appname);
    let pod = or_none(context.get::<read::Pod>(namespace, &page))?;
    if pod.is_some_and(|one| has_app(&one.metadata.labels, appname)) {
        return Ok(Some(format!(
            "there is a Pod {page} in the namespace, which carries the label app={appname} of the application; change spec.appconfig.appname"
        )));
    }
    Ok(None)
}

fn has_app(labels: &Labels, app: &str) -> bool {
    labels.get("app").is_some_and(|value| value == app)
}

fn or_none<O>(read: Result<innkeeper_sdk::Owned<O>, ReadError>) -> Result<Option<O>, ReadError> {
    match read {
        Ok(found) => Ok(Some(found.object)),
        Err(ReadError::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}
