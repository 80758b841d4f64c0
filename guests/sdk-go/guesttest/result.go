package guesttest

import (
	"encoding/json"
	"strings"
	"testing"

	"innkeeper.dev/sdk-go/guest"
)

// Result is the outcome of a run.
type Result struct {
	// Desired is the desired state; empty after a failure.
	Desired guest.DesiredDocument
	// Log has the lines that the guest logged.
	Log []string

	t       testing.TB
	tag     guest.Tag
	text    []byte
	failure guest.Failure
}

// IsComplete fails the test unless the guest returned the whole desired state.
func (r *Result) IsComplete() *Result { return r.is(guest.TagComplete, "complete") }

// IsPartial fails the test unless the guest returned a part of the desired state.
func (r *Result) IsPartial() *Result { return r.is(guest.TagPartial, "partial") }

// Failed fails the test unless the guest failed for this reason.
func (r *Result) Failed(reason string) *Failed {
	r.t.Helper()
	r.is(guest.TagFailed, "a failure")
	if r.failure.Reason != reason {
		r.t.Fatalf("the reason is not %s: %s", reason, r.text)
	}
	return &Failed{t: r.t, Failure: r.failure}
}

// Object returns the desired object of a kind and name. The test fails if there is none.
func (r *Result) Object(kind guest.Kind, name string) Object {
	r.t.Helper()
	for _, desired := range r.Desired.Objects {
		object := Object{t: r.t, fields: desired.Object, Policy: desired.Policy}
		if object.Text("apiVersion") == kind.APIVersion && object.Text("kind") == kind.Kind &&
			object.Text("metadata.name") == name {
			return object
		}
	}
	r.t.Fatalf("there is no %s %s in %s", kind.Kind, name, r.text)
	return Object{}
}

// Condition returns the condition of a type. The test fails if there is none.
func (r *Result) Condition(kind string) guest.Condition {
	r.t.Helper()
	for _, condition := range append(r.Desired.Conditions, r.failure.Conditions...) {
		if condition.Type == kind {
			return condition
		}
	}
	r.t.Fatalf("there is no condition %s in %s", kind, r.text)
	return guest.Condition{}
}

// Status returns the status of the primary.
func (r *Result) Status() Object {
	status := r.Desired.Status
	if status == nil {
		status = r.failure.Status
	}
	return Object{t: r.t, fields: status}
}

// Text returns the document as the host reads it.
func (r *Result) Text() string { return string(r.text) }

func (r *Result) is(tag guest.Tag, name string) *Result {
	r.t.Helper()
	if r.tag != tag {
		r.t.Fatalf("the outcome is not %s: %s", name, r.text)
	}
	return r
}

// Failed is a failure.
type Failed struct {
	guest.Failure
	t testing.TB
}

// IsPermanent fails the test if the host would retry.
func (f *Failed) IsPermanent() *Failed {
	f.t.Helper()
	if !f.Failure.Permanent {
		f.t.Fatalf("the failure is not permanent: %s", f.Message)
	}
	return f
}

// Object is an object as the host reads it.
type Object struct {
	// Policy has the policies of a desired object.
	Policy []guest.Policy

	t      testing.TB
	fields any
}

// Text returns a field by its path, such as `spec.replicas`; numbers are the positions in lists. A
// field that is no text is JSON, a missing one is empty.
func (o Object) Text(path string) string {
	value := o.fields
	for _, name := range strings.Split(path, ".") {
		switch in := value.(type) {
		case map[string]any:
			value = in[name]
		case []any:
			value = at(in, name)
		default:
			return ""
		}
	}
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return value
	default:
		text, err := json.Marshal(value)
		if err != nil {
			o.t.Fatalf("%s: %v", path, err)
		}
		return string(text)
	}
}

func at(list []any, position string) any {
	var index int
	if json.Unmarshal([]byte(position), &index) != nil || index < 0 || index >= len(list) {
		return nil
	}
	return list[index]
}
