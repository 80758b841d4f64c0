// Package guest is for authors of Innkeeper guests in Go. A guest is a pure function from observed
// state to desired state: [Reconciler]. `go test` tests it natively, with the package guesttest;
// `innkeeper build` makes it a component that the host runs.
//
// docs/languages.md says what a guest cannot do.
package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
)

// Reconciler is a guest. P is the primary: a struct with JSON tags for the fields that the guest
// reads.
type Reconciler[P any] interface {
	// Describe returns the manifest of the guest.
	Describe() Manifest
	// Reconcile computes the desired state. After an error the host changes no object: [Fail] makes
	// one with a reason, any other error has the reason GuestError.
	Reconcile(ctx *Context, observed *Observed[P]) (*Desired, error)
}

// Export makes a reconciler the guest of this program. Call it in `func init()` of the package main.
func Export[P any](reconciler Reconciler[P]) {
	describe = func() []byte { return DescribeText(reconciler) }
	reconcile = func(observed []byte) (Tag, []byte) { return Call(reconciler, here, observed) }
}

// What the host calls.
var (
	describe  func() []byte
	reconcile func(observed []byte) (Tag, []byte)
)

// Tag says what an outcome is.
type Tag uint32

const (
	// TagComplete is for the whole desired state: the host deletes earlier objects that are not in
	// it.
	TagComplete Tag = iota
	// TagPartial is for a part of the desired state: the host deletes nothing.
	TagPartial
	// TagFailed is for a [Failure]: the host changes no object.
	TagFailed
)

// DescribeText returns the manifest of a reconciler as the host reads it. It panics if the manifest
// has something that is not JSON.
func DescribeText[P any](reconciler Reconciler[P]) []byte {
	text, err := json.Marshal(reconciler.Describe())
	if err != nil {
		panic("cannot write the manifest: " + err.Error())
	}
	return text
}

// Call runs a reconciler as the host does: with the text of an `observed` document. It returns the
// tag and the text of the outcome. A panic becomes a failure with the reason GuestError.
func Call[P any](reconciler Reconciler[P], host Host, observed []byte) (tag Tag, document []byte) {
	defer func() {
		if cause := recover(); cause != nil {
			for _, line := range strings.Split(string(debug.Stack()), "\n") {
				host.Log(LevelError, strings.ToValidUTF8(line, "\uFFFD"))
			}
			tag, document = failed(fmt.Errorf("panic: %v", cause))
		}
	}()
	decoded, err := decode[P](observed)
	if err != nil {
		return failed(err)
	}
	desired, err := reconciler.Reconcile(&Context{host: host}, decoded)
	if err != nil {
		return failed(err)
	}
	if desired == nil {
		return failed(errors.New("the guest returned neither a desired state nor an error"))
	}
	text, err := desired.document.encode()
	if err != nil {
		return failed(fmt.Errorf("cannot write the desired state: %w", err))
	}
	return desired.tag, text
}

func failed(err error) (Tag, []byte) {
	failure := failureOf(err)
	text, problem := failure.encode()
	if problem != nil {
		failure = Failure{Reason: guestError, Message: problem.Error()}
		text, _ = failure.encode()
	}
	return TagFailed, text
}
