// Package guesttest runs guests natively, in `go test`. Documents cross as text, as in the host, and
// must conform to the schemas of the contract.
package guesttest

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"innkeeper.dev/sdk-go/guest"
)

// Given is what a guest observes in one run.
type Given struct {
	// Primary is the primary, as JSON.
	Primary string
	// Owned has objects that belong to the primary, as JSON. They are ready.
	Owned []string
	// InProgress has objects that belong to the primary and are not ready yet.
	InProgress []string
	// Cluster has other objects, which the guest may read, as JSON.
	Cluster []string
	// Parameters are those of the Module, as JSON. The manifest gets the kinds that they name.
	Parameters string
	// Deleting says that the primary is being deleted.
	Deleting bool
	// Unapplied has the desired objects that the host could not apply.
	Unapplied []guest.Unapplied
	// Now is the time of the run; by default the first second of 2026.
	Now time.Time
}

// Manifest returns the manifest of a guest. The test fails if the host would refuse it.
func Manifest[P any](t testing.TB, reconciler guest.Reconciler[P]) guest.Manifest {
	t.Helper()
	text := guest.DescribeText(reconciler)
	conforms(t, "manifest", text)
	var manifest guest.Manifest
	decode(t, "manifest", text, &manifest)
	return manifest
}

// Run runs a guest once. The test fails if the host would refuse what the guest returns.
func Run[P any](t testing.TB, reconciler guest.Reconciler[P], given Given) *Result {
	t.Helper()
	manifest := withKinds(t, Manifest(t, reconciler), given.Parameters)
	text := observed(t, manifest, given)
	host := &fakeHost{t: t, manifest: manifest, objects: given.Cluster, now: given.Now}
	if host.now.IsZero() {
		host.now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	result := &Result{t: t}
	result.tag, result.text = guest.Call(reconciler, host, text)
	result.Log = host.log
	if result.tag == guest.TagFailed {
		conforms(t, "failure", result.text)
		decode(t, "failure", result.text, &result.failure)
	} else {
		conforms(t, "desired", result.text)
		decode(t, "desired", result.text, &result.Desired)
	}
	return result
}

// observed writes the document that the host would.
func observed(t testing.TB, manifest guest.Manifest, given Given) []byte {
	t.Helper()
	primary := map[string]any{}
	decode(t, "primary", []byte(given.Primary), &primary)
	primary["apiVersion"], primary["kind"] = manifest.Primary.APIVersion, manifest.Primary.Kind
	metadata, _ := primary["metadata"].(map[string]any)
	if metadata == nil || metadata["name"] == nil {
		t.Fatalf("the primary has no metadata.name: %s", given.Primary)
	}
	if metadata["namespace"] == nil && manifest.Primary.Scope != guest.ScopeCluster {
		metadata["namespace"] = "default"
	}
	owned := []any{}
	add := func(objects []string, state guest.ReadinessState) {
		for _, object := range objects {
			if !json.Valid([]byte(object)) {
				t.Fatalf("not JSON: %s", object)
			}
			owned = append(owned, map[string]any{
				"object":    json.RawMessage(object),
				"readiness": guest.Readiness{State: state},
			})
		}
	}
	add(given.Owned, guest.ReadinessStateReady)
	add(given.InProgress, guest.ReadinessStateInProgress)
	document := map[string]any{
		"object":           primary,
		"owned":            owned,
		"deleting":         given.Deleting,
		"unapplied":        append([]guest.Unapplied{}, given.Unapplied...),
		"unserved":         []guest.Kind{},
		"reportReadFields": true,
	}
	if given.Parameters != "" {
		document["parameters"] = json.RawMessage(given.Parameters)
	}
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatalf("cannot write the observed state: %v", err)
	}
	conforms(t, "observed", text)
	return text
}

func decode(t testing.TB, what string, text []byte, into any) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("cannot read the %s: %v in %s", what, err, text)
	}
}
