//! The fields of objects that a cache keeps: [`KeptFields`].

use std::sync::Arc;

use innkeeper_core::FieldMask;

/// The most bytes of memory of the fields that a cache keeps; beyond, it keeps whole objects. A
/// kind may have a cache for each of many namespaces.
const BYTES_MAX: usize = 64 << 10;

/// The fields of objects that a cache keeps: those that its views need.
///
/// When a view joins that needs more, a list begins, and the view can read when it has ended. What
/// nobody needs any more is left out later: a new revision of a module opens a view for its
/// preview, and another one when it becomes active.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptFields {
    /// The fields with which objects enter; `None` before the first view.
    entering: Option<Arc<FieldMask>>,
    /// Fields that every cached object has; `None` before the first list has ended, and if they are
    /// not known.
    cached: Option<Arc<FieldMask>>,
    /// Fields that every object of the running list has.
    listing: Option<Arc<FieldMask>>,
}

impl KeptFields {
    /// The fields with which objects enter.
    pub(super) fn entering(&self) -> Arc<FieldMask> {
        self.entering.clone().unwrap_or_default()
    }

    /// Whether every cached object has these fields.
    pub(super) fn has(&self, fields: &FieldMask) -> bool {
        self.cached.as_ref().is_some_and(|cached| cached.contains(fields))
    }

    /// Lets objects enter with the fields of a new view, too.
    pub(super) fn join(&mut self, fields: &Arc<FieldMask>) {
        self.entering = Some(match self.entering.take() {
            Some(entering) => united_with(entering, fields),
            None => fields.clone(),
        });
    }

    /// Lets objects enter with the fields that the present views need together.
    pub(super) fn narrow(&mut self, needed: &Arc<FieldMask>) {
        self.entering = Some(needed.clone());
        let with_entering = |of_objects: Arc<FieldMask>| {
            if of_objects.contains(needed) {
                Some(needed.clone())
            } else if needed.contains(&of_objects) {
                Some(of_objects)
            } else {
                // A view waits for another list, which sets them.
                None
            }
        };
        self.cached = self.cached.take().and_then(with_entering);
        self.listing = self.listing.take().and_then(with_entering);
    }

    /// Takes the beginning of a list, with what the present views need together.
    pub(super) fn begin_list(&mut self, needed: &Arc<FieldMask>) {
        self.narrow(needed);
        self.listing = Some(needed.clone());
    }

    /// Takes the end of the list.
    pub(super) fn end_list(&mut self) {
        self.cached = self.listing.take();
    }

    /// Ends the list before it has shown all objects.
    pub(super) fn stop_list(&mut self) {
        self.listing = None;
    }

    /// Forgets what the objects have: there are none any more, and no list runs.
    pub(super) fn clear(&mut self) {
        (self.cached, self.listing) = (None, None);
    }
}

/// The fields that views need together.
pub(super) fn united<'a>(mut of_views: impl Iterator<Item = &'a Arc<FieldMask>>) -> Arc<FieldMask> {
    let first = of_views.next().cloned().unwrap_or_default();
    of_views.fold(first, united_with)
}

fn united_with(united: Arc<FieldMask>, fields: &Arc<FieldMask>) -> Arc<FieldMask> {
    // Most views are of modules with the same fields, or of whole objects.
    if Arc::ptr_eq(&united, fields) || united.contains(fields) {
        return united;
    }
    bounded(united.union(fields).into())
}

/// The fields, or whole objects if the fields take too much memory.
pub(super) fn bounded(fields: Arc<FieldMask>) -> Arc<FieldMask> {
    if fields.bytes() > BYTES_MAX { Arc::default() } else { fields }
}
