package guest_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"innkeeper.dev/sdk-go/guest"
	"innkeeper.dev/sdk-go/guesttest"
)

var podKind = guest.Kind{APIVersion: "v1", Kind: "Pod", Plural: "pods"}

// written compares the document of a desired state, as the host reads it, with a text.
func written(t *testing.T, desired *guest.Desired, expected string) {
	t.Helper()
	result := run(t, guesttest.Given{}, func(*guest.Context, *guest.Observed[web]) (*guest.Desired, error) {
		return desired, nil
	}).IsComplete()
	var got, wanted any
	for text, into := range map[string]*any{result.Text(): &got, expected: &wanted} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
	}
	if !reflect.DeepEqual(got, wanted) {
		t.Errorf("got %s, expected %s", result.Text(), expected)
	}
}

func TestGroupAndItsObjectsAreWrittenWithWhatIsSet(t *testing.T) {
	group := guest.RollingRecreate("pods").
		MaxUnavailablePercent(25).
		MinReady(10*time.Second).
		ProgressDeadline(10*time.Minute).
		Check("Ready").
		CheckReason("Synced", guest.ConditionStatusFalse, "Held").
		CheckStatus("Paused", guest.ConditionStatusUnknown).
		Paused(true)
	desired := guest.Complete().
		UpdateGroup(group).
		UpdateGroup(guest.OnDelete("maps")).
		Object(podKind.Object("web-0", nil), guest.PolicyOrphan, guest.InUpdateGroup("pods")).
		Object(configMapKind.Object("a", nil), guest.InUpdateGroup("maps")).
		Object(configMapKind.Object("b", nil))
	written(t, desired, `{
		"updateGroups": [
			{
				"name": "pods",
				"method": "RollingRecreate",
				"maxUnavailable": "25%",
				"minReadySeconds": 10,
				"progressDeadlineSeconds": 600,
				"statusChecks": [
					{"type": "Ready"},
					{"type": "Synced", "status": "False", "reason": "Held"},
					{"type": "Paused", "status": "Unknown"}
				],
				"paused": true
			},
			{"name": "maps", "method": "OnDelete"}
		],
		"objects": [
			{
				"object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-0"}},
				"policy": ["orphan"],
				"updateGroup": "pods"
			},
			{
				"object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}},
				"updateGroup": "maps"
			},
			{"object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}}
		]
	}`)
}

func TestMethodsOfGroupsAreThoseOfTheContract(t *testing.T) {
	desired := guest.Complete().
		UpdateGroup(guest.InPlace("a")).
		UpdateGroup(guest.Recreate("b")).
		UpdateGroup(guest.RollingInPlace("c").MaxUnavailable(2))
	written(t, desired, `{"updateGroups": [
		{"name": "a", "method": "InPlace"},
		{"name": "b", "method": "Recreate"},
		{"name": "c", "method": "RollingInPlace", "maxUnavailable": 2}
	]}`)
}

func TestHistoryIsWrittenWithWhatIsSet(t *testing.T) {
	written(t, guest.Complete().RevisionHistory(guest.RevisionHistory{}), `{"revisionHistory": {}}`)
	history := guest.RevisionHistory{FieldPaths: []string{"spec.template"}, Limit: 3}
	written(t, guest.Complete().RevisionHistory(history),
		`{"revisionHistory": {"fieldPaths": ["spec.template"], "limit": 3}}`)
}

func TestSourcesAreWrittenWithTheKeysThatAreNamed(t *testing.T) {
	own := guest.SecretValues("", "own").Key("a")
	central := guest.SecretValues("central", "pull")
	settings := guest.ConfigMapValues("central", "settings")
	desired := guest.Complete().
		Object(secretKind.Object("copy", nil), guest.ValuesFrom(central, own.KeyAs("b", "c"))).
		Object(configMapKind.Object("copy", nil), guest.ValuesFrom(settings))
	equal(t, own.Keys, map[string]string{"a": "a"})
	written(t, desired, `{"objects": [
		{
			"object": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "copy"}},
			"valuesFrom": [
				{"kind": "Secret", "namespace": "central", "name": "pull"},
				{"kind": "Secret", "name": "own", "keys": {"a": "a", "b": "c"}}
			]
		},
		{
			"object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "copy"}},
			"valuesFrom": [{"kind": "ConfigMap", "namespace": "central", "name": "settings"}]
		}
	]}`)
}

func TestTemplateHashOfAValueIsThatOfEverySDK(t *testing.T) {
	equal(t, guest.TemplateHash(nil), "drpwggh")
	equal(t, guest.TemplateHash(guest.Fields{"b": []any{1, "x"}, "a": guest.Fields{"c": true}}), "qsx8vqm")
	texts := guest.Fields{
		"é\u2028": "\u0001\b\"\\/<&>\u007f😀", "\ue000": -1, "😀": []any{[]any{}, guest.Fields{}, false},
	}
	equal(t, guest.TemplateHash(texts), "phsrcdl")
}
