package guest

import (
	"fmt"
	"time"
)

// Group builds an update group: objects that the host updates together, by which method, how many at
// a time, and when an updated object is good enough to go on. Missing objects are created at once.
//
// An object is updated under its name: a name that changes with the content makes a new object
// instead.
type Group struct {
	group UpdateGroup
}

// OnDelete makes a group whose objects the host never writes to: each changes when somebody deletes
// it.
func OnDelete(name string) *Group { return newGroup(name, UpdateMethodOnDelete) }

// InPlace makes a group to whose objects the host applies all changes at once, as without a group.
func InPlace(name string) *Group { return newGroup(name, UpdateMethodInPlace) }

// Recreate makes a group whose objects the host deletes and creates: one, then all others that have
// the same change.
func Recreate(name string) *Group { return newGroup(name, UpdateMethodRecreate) }

// RollingInPlace makes a group to whose objects the host applies changes, one at a time.
func RollingInPlace(name string) *Group { return newGroup(name, UpdateMethodRollingInPlace) }

// RollingRecreate makes a group whose objects the host deletes and creates, one at a time.
func RollingRecreate(name string) *Group { return newGroup(name, UpdateMethodRollingRecreate) }

func newGroup(name string, method UpdateMethod) *Group {
	return &Group{UpdateGroup{Name: name, Method: method}}
}

// MaxUnavailable sets how many objects may be unavailable because of an update; at least 1. Default: 1.
func (g *Group) MaxUnavailable(objects int) *Group {
	g.group.MaxUnavailable = objects
	return g
}

// MaxUnavailablePercent sets the share of the objects that may be unavailable because of an update,
// from 1 to 100, rounded down to at least one object.
func (g *Group) MaxUnavailablePercent(percent int) *Group {
	g.group.MaxUnavailable = fmt.Sprintf("%d%%", percent)
	return g
}

// MinReady sets for how long an updated object has to be ready before the host goes on.
func (g *Group) MinReady(period time.Duration) *Group {
	g.group.MinReadySeconds = *seconds(period)
	return g
}

// ProgressDeadline sets after which time an updated object that is not available has failed, which
// stops the update.
func (g *Group) ProgressDeadline(period time.Duration) *Group {
	g.group.ProgressDeadlineSeconds = seconds(period)
	return g
}

// Check requires a condition that is true, in addition to readiness, before the host goes on.
func (g *Group) Check(kind string) *Group {
	return g.check(StatusCheck{Type: kind})
}

// CheckStatus requires a condition of this status before the host goes on.
func (g *Group) CheckStatus(kind string, status ConditionStatus) *Group {
	return g.check(StatusCheck{Type: kind, Status: status})
}

// CheckReason requires a condition of this status and reason before the host goes on.
func (g *Group) CheckReason(kind string, status ConditionStatus, reason string) *Group {
	return g.check(StatusCheck{Type: kind, Status: status, Reason: &reason})
}

// Paused sets whether the host updates no object; it still creates missing ones.
func (g *Group) Paused(paused bool) *Group {
	g.group.Paused = paused
	return g
}

func (g *Group) check(check StatusCheck) *Group {
	g.group.StatusChecks = append(g.group.StatusChecks, check)
	return g
}

func (g UpdateGroup) fields() Fields {
	fields := Fields{"name": g.Name, "method": string(g.Method)}
	if g.MaxUnavailable != nil {
		fields["maxUnavailable"] = g.MaxUnavailable
	}
	if g.MinReadySeconds != 0 {
		fields["minReadySeconds"] = g.MinReadySeconds
	}
	if g.ProgressDeadlineSeconds != nil {
		fields["progressDeadlineSeconds"] = *g.ProgressDeadlineSeconds
	}
	checks := make([]any, 0, len(g.StatusChecks))
	for _, one := range g.StatusChecks {
		check := Fields{"type": one.Type}
		if one.Status != "" {
			check["status"] = string(one.Status)
		}
		if one.Reason != nil {
			check["reason"] = *one.Reason
		}
		checks = append(checks, check)
	}
	if len(checks) > 0 {
		fields["statusChecks"] = checks
	}
	if g.Paused {
		fields["paused"] = true
	}
	return fields
}
