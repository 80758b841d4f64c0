package guest

import (
	"errors"
	"fmt"
	"time"
)

// guestError is the reason of a failure that has none of its own.
const guestError = "GuestError"

// FailureError is an error with the members of a failure.
type FailureError struct {
	failure Failure
}

// Fail makes an error for [Reconciler.Reconcile]: the host changes no object, reports the failure in
// the condition `Synced`, and retries with backoff. The reason is one CamelCase word for programs.
func Fail(reason, format string, args ...any) *FailureError {
	return &FailureError{Failure{Reason: reason, Message: fmt.Sprintf(format, args...)}}
}

// Error returns the message.
func (f *FailureError) Error() string { return f.failure.Message }

// Permanent says that a retry cannot help until something changes.
func (f *FailureError) Permanent() *FailureError {
	f.failure.Permanent = true
	return f
}

// Status sets the status of the primary, as in [Desired.Status].
func (f *FailureError) Status(status any) *FailureError {
	f.failure.Status = status
	return f
}

// Condition adds a condition of the primary.
func (f *FailureError) Condition(condition Condition) *FailureError {
	f.failure.Conditions = append(f.failure.Conditions, condition)
	return f
}

// Event adds an Event about the primary.
func (f *FailureError) Event(event Event) *FailureError {
	f.failure.Events = append(f.failure.Events, event)
	return f
}

// RequeueAfter makes the host run the guest again after this time instead of a backoff.
func (f *FailureError) RequeueAfter(period time.Duration) *FailureError {
	f.failure.RequeueAfterSeconds = seconds(period)
	return f
}

// failureOf is the failure of an error, which may wrap one of [Fail].
func failureOf(err error) Failure {
	var own *FailureError
	if errors.As(err, &own) {
		failure := own.failure
		failure.Message = err.Error()
		return failure
	}
	return Failure{Reason: guestError, Message: err.Error()}
}
