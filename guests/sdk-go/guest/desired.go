package guest

import (
	"fmt"
	"time"
)

// Desired is the desired state: the result of [Reconciler.Reconcile].
type Desired struct {
	tag      Tag
	document DesiredDocument
}

// Complete begins the whole desired state: the host deletes objects of earlier runs that are not in
// it.
func Complete() *Desired { return &Desired{tag: TagComplete} }

// Partial begins a part of the desired state: the guest does not know everything yet, and the host
// deletes nothing.
func Partial() *Desired { return &Desired{tag: TagPartial} }

// Object adds an object that the guest wants to exist: an [Object], or a struct with JSON tags.
func (d *Desired) Object(object any, options ...ObjectOption) *Desired {
	desired := DesiredObject{Object: object}
	for _, one := range options {
		one.option(&desired)
	}
	d.document.Objects = append(d.document.Objects, desired)
	return d
}

// UpdateGroup adds a group of objects that the host updates together.
func (d *Desired) UpdateGroup(group *Group) *Desired {
	d.document.UpdateGroups = append(d.document.UpdateGroups, group.group)
	return d
}

// RevisionHistory sets which fields of the primary the host stores, so that it creates a missing
// object of a rolling group as it was while the update stops. The manifest has to own `apps/v1`
// `ControllerRevision`.
func (d *Desired) RevisionHistory(history RevisionHistory) *Desired {
	d.document.RevisionHistory = &history
	return d
}

// Status sets the status of the primary, without `conditions` and `observedGeneration`, which the
// host writes: [Fields], or a struct with JSON tags.
func (d *Desired) Status(status any) *Desired {
	d.document.Status = status
	return d
}

// Condition adds a condition of the primary. The host adds the times.
func (d *Desired) Condition(condition Condition) *Desired {
	d.document.Conditions = append(d.document.Conditions, condition)
	return d
}

// Event adds an Event about the primary.
func (d *Desired) Event(event Event) *Desired {
	d.document.Events = append(d.document.Events, event)
	return d
}

// Keep adds an object of an earlier run that the host neither deletes nor changes.
func (d *Desired) Keep(reference Reference) *Desired {
	d.document.Keep = append(d.document.Keep, reference)
	return d
}

// RequeueAfter makes the host run the guest again after this time even if nothing changed.
func (d *Desired) RequeueAfter(period time.Duration) *Desired {
	d.document.RequeueAfterSeconds = seconds(period)
	return d
}

// Finalized says that the finalization is done, in answer to [Observed].Deleting.
func (d *Desired) Finalized() *Desired {
	d.document.Finalized = true
	return d
}

// True makes a condition that holds.
func True(kind, reason, format string, args ...any) Condition {
	return condition(ConditionStatusTrue, kind, reason, format, args)
}

// False makes a condition that does not hold.
func False(kind, reason, format string, args ...any) Condition {
	return condition(ConditionStatusFalse, kind, reason, format, args)
}

// Unknown makes a condition that the guest cannot determine.
func Unknown(kind, reason, format string, args ...any) Condition {
	return condition(ConditionStatusUnknown, kind, reason, format, args)
}

func condition(status ConditionStatus, kind, reason, format string, args []any) Condition {
	return Condition{Type: kind, Status: status, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Normal makes an Event about something that happened as expected.
func Normal(reason, format string, args ...any) Event {
	return Event{Type: EventTypeNormal, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Warning makes an Event about something that needs attention.
func Warning(reason, format string, args ...any) Event {
	return Event{Type: EventTypeWarning, Reason: reason, Message: fmt.Sprintf(format, args...)}
}
