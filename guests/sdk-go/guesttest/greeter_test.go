package guesttest_test

import (
	"testing"

	"innkeeper.dev/sdk-go/guest"
	"innkeeper.dev/sdk-go/guesttest"
)

// The definition, which a guest embeds from its file crd.json.
var crd = []byte(`{"metadata": {"name": "greetings.example.com"}}`)

// What docs/languages.md shows begins here.

// Greeting is the primary. Its kind is cluster-scoped.
type Greeting struct {
	guest.Head
	Spec struct {
		Text      string `json:"text"`
		Namespace string `json:"namespace"`
	} `json:"spec"`
}

// GreetingStatus is the status of a Greeting, without its conditions.
type GreetingStatus struct {
	ConfigMap string `json:"configMap"`
}

var (
	greetingKind = guest.Kind{
		APIVersion: "example.com/v1", Kind: "Greeting", Plural: "greetings",
		Scope: guest.ScopeCluster, // without it: namespaced
	}
	configMapKind = guest.Kind{APIVersion: "v1", Kind: "ConfigMap", Plural: "configmaps"}
)

// Greeter is the guest.
type Greeter struct{}

// Describe returns the manifest.
func (Greeter) Describe() guest.Manifest {
	return guest.ReconcilerOf(greetingKind, "greeter", "1.0.0").Owns(configMapKind).CRD(crd).Manifest()
}

// Reconcile makes the ConfigMap of a Greeting.
func (Greeter) Reconcile(_ *guest.Context, o *guest.Observed[Greeting]) (*guest.Desired, error) {
	spec := o.Primary.Spec
	if spec.Text == "" {
		return nil, guest.Fail("NoText", "spec.text is empty; give a text").Permanent()
	}
	// The primary is in no namespace, so its objects name theirs.
	data := guest.Fields{"data": guest.Fields{"text": spec.Text}}
	configMap := configMapKind.Object(o.Name(), data).InNamespace(spec.Namespace)

	// The state before this run: no object in the first one.
	owned, err := guest.OwnedAs[guest.Head](o, configMapKind)
	if err != nil {
		return nil, err
	}
	ready := guest.False("Ready", "InProgress", "ConfigMap %s does not exist yet", o.Name())
	for _, one := range owned {
		if one.Object.Namespace() == spec.Namespace && one.IsReady() {
			ready = guest.True("Ready", "Applied", "ConfigMap %s has the text", o.Name())
		}
	}
	return guest.Complete().
		Object(configMap).
		Status(GreetingStatus{ConfigMap: spec.Namespace + "/" + o.Name()}).
		Condition(ready), nil
}

func init() { guest.Export(Greeter{}) }

// What docs/languages.md shows ends here.

const greeting = `{"metadata": {"name": "a"}, "spec": {"text": "Good day", "namespace": "n"}}`

func TestGreetingBecomesAConfigMapInItsNamespace(t *testing.T) {
	result := guesttest.Run(t, Greeter{}, guesttest.Given{Primary: greeting}).IsComplete()
	configMap := result.Object(configMapKind, "a")
	if text := configMap.Text("data.text"); text != "Good day" {
		t.Errorf("text: %q", text)
	}
	if namespace := configMap.Text("metadata.namespace"); namespace != "n" {
		t.Errorf("namespace: %q", namespace)
	}
	if status := result.Status().Text("configMap"); status != "n/a" {
		t.Errorf("status: %q", status)
	}
	if ready := result.Condition("Ready"); ready.Status != guest.ConditionStatusFalse {
		t.Errorf("condition: %+v", ready)
	}
}

func TestGreetingIsReadyWhenItsConfigMapIs(t *testing.T) {
	owned := `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}}`
	given := guesttest.Given{Primary: greeting, Owned: []string{owned}}
	result := guesttest.Run(t, Greeter{}, given).IsComplete()
	if ready := result.Condition("Ready"); ready.Status != guest.ConditionStatusTrue {
		t.Errorf("condition: %+v", ready)
	}
}

func TestGreetingWithoutATextFails(t *testing.T) {
	empty := `{"metadata": {"name": "a"}, "spec": {"text": "", "namespace": "n"}}`
	guesttest.Run(t, Greeter{}, guesttest.Given{Primary: empty}).Failed("NoText").IsPermanent()
}
