package guest_test

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"innkeeper.dev/sdk-go/guest"
	"innkeeper.dev/sdk-go/guesttest"
)

// copier is a guest whose kinds are parameters of the Module.
type copier struct{ schema json.RawMessage }

type copierParameters struct{ Target, Copies, Watch guest.Kind }

func (c copier) Describe() guest.Manifest {
	namespaceKind := guest.Kind{
		APIVersion: "v1", Kind: "Namespace", Plural: "namespaces", Scope: guest.ScopeCluster,
	}
	return guest.ReconcilerOf(namespaceKind, "copier", "1.0.0").
		Parameters(c.schema).
		DecoratorOfParameter("target").
		OwnsParameter("copies").
		MergesIntoParameter("labelled").
		ReadsParameter("watch").
		Manifest()
}

func (copier) Reconcile(c *guest.Context, o *guest.Observed[guest.Head]) (*guest.Desired, error) {
	var parameters copierParameters
	if err := o.Parameters(&parameters); err != nil {
		return nil, err
	}
	source, err := guest.Get[configMap](c, parameters.Watch, o.Namespace(), "source")
	if err != nil {
		return nil, err
	}
	copied := parameters.Copies.Object(o.Name(), guest.Fields{"data": source.Data})
	return guest.Complete().Object(copied), nil
}

func TestManifestWithKindParametersIsThatOfEverySDK(t *testing.T) {
	text, err := os.ReadFile("../../sdk/tests/kind_parameters.json")
	if err != nil {
		t.Fatal(err)
	}
	var expected, got map[string]any
	if err := json.Unmarshal(text, &expected); err != nil {
		t.Fatal(err)
	}
	schema, err := json.Marshal(expected["parametersSchema"])
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(guest.DescribeText(copier{schema}), &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, expected) {
		t.Errorf("got %v, expected %v", got, expected)
	}
}

func TestGuestReadsAndDesiresTheKindsOfItsParameters(t *testing.T) {
	result := guesttest.Run(t, copier{json.RawMessage(`{}`)}, guesttest.Given{
		Primary: `{"metadata": {"name": "web"}}`,
		Parameters: `{"target": {"apiVersion": "apps/v1", "kind": "Deployment"},
			"copies": {"apiVersion": "v1", "kind": "Secret"},
			"watch": {"apiVersion": "v1", "kind": "ConfigMap"}}`,
		Cluster: []string{`{"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"},
			"metadata": {"name": "source", "namespace": "default"}}`},
	}).IsComplete()
	equal(t, result.Object(secretKind, "web").Text("data.a"), "b")
}
