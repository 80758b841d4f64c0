package guest

import (
	"fmt"
	"strings"
	"time"
)

// Context is what a guest may ask during a run.
type Context struct {
	host Host
}

// Host answers the imports of a guest. The package guesttest has one for tests.
type Host interface {
	// Get reads one object: the text of an `observed-object` document, or a [ReadError].
	Get(apiVersion, kind, namespace, name string) (string, error)
	// List reads all objects that match: the text of an `observed-list` document, or a [ReadError].
	List(apiVersion, kind, namespace, labelSelector string) (string, error)
	// Now returns the time of the run.
	Now() time.Time
	// Log writes one line to the log of the host.
	Log(level Level, line string)
}

// Level is the severity of a line of the log.
type Level int32

const (
	// LevelDebug is for the author of the guest.
	LevelDebug Level = iota
	// LevelInfo is for a report of work.
	LevelInfo
	// LevelWarn is for a possible problem.
	LevelWarn
	// LevelError is for a problem.
	LevelError
)

// Now returns the time of the run. It does not change during a run, and its passing does not run
// the guest: see [Desired.RequeueAfter]. (time.Now is not the time.)
func (c *Context) Now() time.Time {
	return c.host.Now().UTC()
}

// Log writes one line to the log of the host.
func (c *Context) Log(level Level, format string, args ...any) {
	c.host.Log(level, strings.ToValidUTF8(fmt.Sprintf(format, args...), "\uFFFD"))
}
