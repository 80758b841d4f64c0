package guest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"innkeeper.dev/sdk-go/guest"
	"innkeeper.dev/sdk-go/guesttest"
)

var (
	webKind       = guest.Kind{APIVersion: "example.com/v1", Kind: "Web", Plural: "webs"}
	configMapKind = guest.Kind{APIVersion: "v1", Kind: "ConfigMap", Plural: "configmaps"}
	secretKind    = guest.Kind{APIVersion: "v1", Kind: "Secret", Plural: "secrets"}
)

type web struct {
	guest.Head
	Spec struct {
		Text string `json:"text"`
	} `json:"spec"`
}

type configMap struct {
	guest.Head
	Data map[string]string `json:"data"`
}

// function is a guest of one function.
type function func(*guest.Context, *guest.Observed[web]) (*guest.Desired, error)

func (function) Describe() guest.Manifest {
	return guest.ReconcilerOf(webKind, "web", "1.0.0").
		Owns(configMapKind).
		Parameters([]byte(`{"type": "object"}`)).
		Finalizer("").
		Resync(90 * time.Second).
		Selects(guest.PrimarySelector{MatchLabels: map[string]string{"web": "yes"}}).
		Manifest()
}

func (f function) Reconcile(c *guest.Context, o *guest.Observed[web]) (*guest.Desired, error) {
	return f(c, o)
}

const primary = `{"metadata": {"name": "a", "labels": {"web": "yes"}}, "spec": {"text": "Good day"}}`

func run(t *testing.T, given guesttest.Given, f function) *guesttest.Result {
	t.Helper()
	if given.Primary == "" {
		given.Primary = primary
	}
	return guesttest.Run(t, f, given)
}

func equal(t *testing.T, got, expected any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(expected) {
		t.Errorf("got %v, expected %v", got, expected)
	}
}

func TestManifestHasWhatWasDescribed(t *testing.T) {
	manifest := guesttest.Manifest(t, function(nil))
	equal(t, *manifest.ResyncSeconds, 90)
	equal(t, *manifest.Finalizer, "")
	equal(t, manifest.Owned[0].Kind.Kind, "ConfigMap")
	equal(t, manifest.Selector.MatchLabels["web"], "yes")
}

func TestDecoratorMergesIntoItsPrimaries(t *testing.T) {
	manifest := guest.DecoratorOf(configMapKind, "decorator", "").MergesInto(configMapKind).Manifest()
	equal(t, manifest.Decorates && manifest.Owned[0].Merges, true)
}

func TestDesiredStateHasObjectsStatusConditionsAndEvents(t *testing.T) {
	result := run(t, guesttest.Given{}, func(_ *guest.Context, o *guest.Observed[web]) (*guest.Desired, error) {
		fields := guest.Fields{"data": guest.Fields{"text": o.Primary.Spec.Text}}
		object := configMapKind.Object(o.Name(), fields).
			Labels(map[string]string{"app": "web"}).
			InNamespace("other")
		return guest.Partial().
			Object(object, guest.PolicyOrphan).
			Status(guest.Fields{"phase": "Up"}).
			Condition(guest.True("Ready", "Up", "%d of %d", 1, 1)).
			Event(guest.Warning("Slow", "it is slow")).
			Keep(configMapKind.Reference("", "old")).
			RequeueAfter(1500 * time.Millisecond), nil
	}).IsPartial()
	object := result.Object(configMapKind, "a")
	equal(t, object.Text("data.text"), "Good day")
	equal(t, object.Text("metadata.labels.app"), "web")
	equal(t, object.Text("metadata.namespace"), "other")
	equal(t, object.Policy, []guest.Policy{guest.PolicyOrphan})
	equal(t, result.Status().Text("phase"), "Up")
	equal(t, result.Condition("Ready").Message, "1 of 1")
	equal(t, result.Desired.Events[0].Type, guest.EventTypeWarning)
	equal(t, result.Desired.Keep[0].Name, "old")
	equal(t, *result.Desired.RequeueAfterSeconds, 2)
}

func TestManifestHasNoPrimaryWhenNoneIsNamed(t *testing.T) {
	text, err := json.Marshal(guest.Manifest{Name: "labels"})
	equal(t, err, nil)
	equal(t, string(text), `{"name":"labels"}`)
}

func TestDeletedPrimaryIsFinalized(t *testing.T) {
	given := guesttest.Given{Deleting: true}
	result := run(t, given, func(_ *guest.Context, o *guest.Observed[web]) (*guest.Desired, error) {
		if !o.Deleting {
			return nil, errors.New("the primary is not being deleted")
		}
		return guest.Complete().Finalized(), nil
	}).IsComplete()
	equal(t, result.Desired.Finalized, true)
}

func TestOwnedObjectsAreReadByKindAndName(t *testing.T) {
	object := func(kind, name string) string {
		return fmt.Sprintf(`{"apiVersion": "v1", "kind": %q,
			"metadata": {"name": %q, "namespace": "default"}, "data": {"a": "b"}}`, kind, name)
	}
	given := guesttest.Given{
		Owned:      []string{object("ConfigMap", "one"), object("Secret", "one")},
		InProgress: []string{object("ConfigMap", "two")},
	}
	run(t, given, func(_ *guest.Context, o *guest.Observed[web]) (*guest.Desired, error) {
		maps, err := guest.OwnedAs[configMap](o, configMapKind)
		equal(t, err, nil)
		equal(t, len(maps), 2)
		equal(t, maps[0].Object.Data["a"], "b")
		equal(t, maps[0].IsReady() && !maps[1].IsReady(), true)
		two, err := guest.OwnedNamed[configMap](o, configMapKind, "two")
		equal(t, err, nil)
		equal(t, two.Object.Name(), "two")
		three, err := guest.OwnedNamed[configMap](o, configMapKind, "three")
		equal(t, three == nil && err == nil, true)
		return guest.Complete(), nil
	}).IsComplete()
}

func TestErrorWithAReasonFailsWithIt(t *testing.T) {
	run(t, guesttest.Given{}, func(*guest.Context, *guest.Observed[web]) (*guest.Desired, error) {
		err := guest.Fail("BadText", "the text is bad").
			Permanent().
			Status(guest.Fields{"phase": "Down"}).
			Condition(guest.False("Ready", "BadText", ""))
		return nil, fmt.Errorf("spec.text: %w", err)
	}).Failed("BadText").IsPermanent()
}

func TestOtherErrorFailsAndIsRetried(t *testing.T) {
	failed := run(t, guesttest.Given{}, func(*guest.Context, *guest.Observed[web]) (*guest.Desired, error) {
		return nil, errors.New("no idea")
	}).Failed("GuestError")
	equal(t, failed.Message, "no idea")
	equal(t, failed.Permanent, false)
}

func TestPanicFailsAndIsLogged(t *testing.T) {
	result := run(t, guesttest.Given{}, func(*guest.Context, *guest.Observed[web]) (*guest.Desired, error) {
		var none map[string]string
		none["a"] = "b"
		return guest.Complete(), nil
	})
	failed := result.Failed("GuestError")
	equal(t, failed.Message, "panic: assignment to entry in nil map")
	equal(t, strings.Contains(strings.Join(result.Log, "\n"), "guest_test.go"), true)
}

func TestNoDesiredStateFails(t *testing.T) {
	run(t, guesttest.Given{}, func(*guest.Context, *guest.Observed[web]) (*guest.Desired, error) {
		return nil, nil
	}).Failed("GuestError")
}

func TestPrimaryOfAnotherTypeFailsPermanently(t *testing.T) {
	given := guesttest.Given{Primary: `{"metadata": {"name": "a"}, "spec": {"text": 3}}`}
	run(t, given, nil).Failed("BadPrimary").IsPermanent()
}

func TestParametersAreDecoded(t *testing.T) {
	given := guesttest.Given{Parameters: `{"size": 3}`}
	run(t, given, func(_ *guest.Context, o *guest.Observed[web]) (*guest.Desired, error) {
		var parameters struct{ Size int }
		equal(t, o.Parameters(&parameters), nil)
		equal(t, parameters.Size, 3)
		var bad struct{ Size string }
		return guest.Complete(), o.Parameters(&bad)
	}).Failed("BadParameters").IsPermanent()
}

func TestReadsAreAnsweredByCase(t *testing.T) {
	given := guesttest.Given{Cluster: []string{
		`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "namespace": "x"}}`,
		`{"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"},
			"metadata": {"name": "a", "namespace": "x", "labels": {"app": "web"}}}`,
	}}
	run(t, given, func(c *guest.Context, _ *guest.Observed[web]) (*guest.Desired, error) {
		one, err := guest.Get[configMap](c, configMapKind, "x", "a")
		equal(t, err, nil)
		equal(t, one.Data["a"], "b")
		_, err = guest.Get[configMap](c, configMapKind, "x", "c")
		equal(t, errors.Is(err, guest.ErrNotFound), true)
		equal(t, err, "cannot read ConfigMap x/c: not found")
		_, err = guest.Get[configMap](c, secretKind, "x", "a")
		equal(t, errors.Is(err, guest.ErrUndeclared), true)
		all, err := guest.List[configMap](c, configMapKind, "", "")
		equal(t, err, nil)
		equal(t, []string{all[0].Name(), all[1].Name()}, []string{"a", "b"})
		some, err := guest.List[configMap](c, configMapKind, "x", "app=web")
		equal(t, err, nil)
		equal(t, len(some), 1)
		_, err = guest.List[configMap](c, configMapKind, "x", "app in (web)")
		equal(t, errors.Is(err, guest.ErrInvalid), true)
		return guest.Complete(), nil
	}).IsComplete()
}

func TestTimeIsThatOfTheRun(t *testing.T) {
	given := guesttest.Given{Now: time.Unix(1800000000, 0)}
	result := run(t, given, func(c *guest.Context, _ *guest.Observed[web]) (*guest.Desired, error) {
		c.Log(guest.LevelInfo, "it is %s", c.Now().Format(time.RFC3339))
		return guest.Complete(), nil
	})
	equal(t, result.Log, []string{"it is 2027-01-15T08:00:00Z"})
}
