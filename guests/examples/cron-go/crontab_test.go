package main

import (
	"testing"

	"innkeeper.dev/sdk-go/guesttest"
)

const primary = `{"metadata": {"name": "report"},
	"spec": {"schedule": "*/5 * * * *", "image": "busybox:1.37", "command": ["date"]}}`

const cronJob = `{"apiVersion": "batch/v1", "kind": "CronJob",
	"metadata": {"name": "report", "namespace": "default"},
	"status": {"lastScheduleTime": "2026-01-01T00:05:00Z"}}`

func TestManifestConformsToTheSchema(t *testing.T) {
	manifest := guesttest.Manifest(t, Guest{})
	if len(manifest.CRDs) != 1 {
		t.Errorf("there is no definition: %v", manifest)
	}
}

func TestCronJobHasTheScheduleAndTheCommand(t *testing.T) {
	result := guesttest.Run(t, Guest{}, guesttest.Given{Primary: primary}).IsComplete()
	job := result.Object(cronJobKind, "report")
	for path, expected := range map[string]string{
		"spec.schedule": "*/5 * * * *",
		"spec.suspend":  "false",
		"spec.jobTemplate.spec.template.spec.containers.0.command": `["date"]`,
	} {
		if got := job.Text(path); got != expected {
			t.Errorf("%s is %s, not %s", path, got, expected)
		}
	}
	if reason := result.Condition("Ran").Reason; reason != "NotYet" {
		t.Errorf("the reason is %s", reason)
	}
}

func TestStatusSaysWhenTheCronJobLastRan(t *testing.T) {
	given := guesttest.Given{Primary: primary, Owned: []string{cronJob}}
	result := guesttest.Run(t, Guest{}, given).IsComplete()
	if lastRun := result.Status().Text("lastRun"); lastRun != "2026-01-01T00:05:00Z" {
		t.Errorf("lastRun is %s", lastRun)
	}
	if status := result.Condition("Ran").Status; status != "True" {
		t.Errorf("Ran is %s", status)
	}
}

func TestEmptyImageFailsPermanently(t *testing.T) {
	given := guesttest.Given{Primary: `{"metadata": {"name": "a"}, "spec": {"schedule": "* * * * *"}}`}
	guesttest.Run(t, Guest{}, given).Failed("NoImage").IsPermanent()
}
