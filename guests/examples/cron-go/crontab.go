// A CronTab becomes a CronJob, and its status says when it last ran.
package main

import (
	_ "embed"
	"time"

	"innkeeper.dev/sdk-go/guest"
)

//go:embed crd.json
var crd []byte

var (
	cronTabKind = guest.Kind{APIVersion: "example.innkeeper.dev/v1", Kind: "CronTab", Plural: "crontabs"}
	cronJobKind = guest.Kind{APIVersion: "batch/v1", Kind: "CronJob", Plural: "cronjobs"}
)

// CronTab is the primary.
type CronTab struct {
	guest.Head
	Spec struct {
		Schedule string   `json:"schedule"`
		Image    string   `json:"image"`
		Command  []string `json:"command"`
		Paused   bool     `json:"paused"`
	} `json:"spec"`
}

// CronJob has the fields of a CronJob that the guest reads.
type CronJob struct {
	guest.Head
	Status struct {
		LastScheduleTime *time.Time `json:"lastScheduleTime"`
	} `json:"status"`
}

// Guest is the guest.
type Guest struct{}

// Describe returns the manifest.
func (Guest) Describe() guest.Manifest {
	return guest.ReconcilerOf(cronTabKind, "cron-go", "0.1.0").Owns(cronJobKind).CRD(crd).Manifest()
}

// Reconcile makes the CronJob of a CronTab.
func (Guest) Reconcile(_ *guest.Context, o *guest.Observed[CronTab]) (*guest.Desired, error) {
	tab := o.Primary
	if tab.Spec.Image == "" {
		return nil, guest.Fail("NoImage", "spec.image is empty; give an image").Permanent()
	}
	container := guest.Fields{"name": "main", "image": tab.Spec.Image}
	if len(tab.Spec.Command) > 0 {
		container["command"] = tab.Spec.Command
	}
	pod := guest.Fields{"restartPolicy": "Never", "containers": []guest.Fields{container}}
	desired := guest.Complete().Object(cronJobKind.Object(tab.Name(), guest.Fields{"spec": guest.Fields{
		"schedule":    tab.Spec.Schedule,
		"suspend":     tab.Spec.Paused,
		"jobTemplate": guest.Fields{"spec": guest.Fields{"template": guest.Fields{"spec": pod}}},
	}}))

	job, err := guest.OwnedNamed[CronJob](o, cronJobKind, tab.Name())
	if err != nil {
		return nil, err
	}
	if job == nil || job.Object.Status.LastScheduleTime == nil {
		return desired.Condition(guest.False("Ran", "NotYet", "the CronJob has not run yet")), nil
	}
	lastRun := job.Object.Status.LastScheduleTime
	return desired.
		Status(guest.Fields{"lastRun": lastRun}).
		Condition(guest.True("Ran", "Scheduled", "the CronJob has run")), nil
}
