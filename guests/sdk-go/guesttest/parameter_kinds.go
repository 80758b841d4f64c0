package guesttest

import (
	"encoding/json"
	"strings"
	"testing"

	"innkeeper.dev/sdk-go/guest"
)

// withKinds returns a manifest with the kinds that the parameters name, as the host resolves it.
// Plurals and scopes are unknown without an API server.
func withKinds(t testing.TB, manifest guest.Manifest, parameters string) guest.Manifest {
	t.Helper()
	if parameters == "" || len(manifest.KindParameters) == 0 {
		return manifest
	}
	values := map[string]json.RawMessage{}
	decode(t, "parameters", []byte(parameters), &values)
	for _, parameter := range manifest.KindParameters {
		for _, kind := range kindsOf(t, parameter.Parameter, values[parameter.Parameter]) {
			switch parameter.Role {
			case guest.KindRolePrimary:
				manifest.Primary = kind
			case guest.KindRoleOwned:
				manifest.Owned = append(manifest.Owned, guest.OwnedKind{Kind: kind})
			case guest.KindRoleReads:
				manifest.Reads = append(manifest.Reads, kind)
			}
		}
	}
	return manifest
}

// kindsOf decodes one kind, or a list.
func kindsOf(t testing.TB, parameter string, value json.RawMessage) []guest.Kind {
	t.Helper()
	text := strings.TrimSpace(string(value))
	if text == "" || text == "null" {
		return nil
	}
	if !strings.HasPrefix(text, "[") {
		text = "[" + text + "]"
	}
	var kinds []guest.Kind
	decode(t, "parameter "+parameter, []byte(text), &kinds)
	for _, kind := range kinds {
		if kind.APIVersion == "" || kind.Kind == "" {
			t.Fatalf("the host would refuse the parameter %s: apiVersion or kind is missing", parameter)
		}
	}
	return kinds
}
