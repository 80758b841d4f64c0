package guesttest

import "testing"

// checked returns why a document does not conform to a schema, if it does not.
func checked(t *testing.T, name, document string) string {
	t.Helper()
	text, err := schemas.ReadFile("schema/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	decode(t, "schema", text, &schema)
	var value any
	decode(t, "document", []byte(document), &value)
	if err := (validator{schema}).check(schema, value, name); err != nil {
		return err.Error()
	}
	return ""
}

func TestDocumentsAreCheckedByTheSchemas(t *testing.T) {
	const kind = `{"apiVersion": "v1", "kind": "ConfigMap", "plural": "configmaps"}`
	for _, one := range []struct{ name, document, problem string }{
		{"desired", `{}`, ""},
		{"desired", `{"requeueAfterSeconds": 3, "status": {"any": ["thing"]}}`, ""},
		{"desired", `{"object": []}`, "desired: has the unknown member object"},
		{"desired", `{"objects": {}}`, "desired.objects: is not of type array"},
		{"desired", `{"objects": [{}]}`, "desired.objects.0: has no object"},
		{"desired", `{"requeueAfterSeconds": 1.5}`, "desired.requeueAfterSeconds: is not of type [integer null]"},
		{"desired", `{"requeueAfterSeconds": -1}`, "desired.requeueAfterSeconds: is less than 0"},
		{"desired", `{"objects": [{"object": 1, "policy": ["mine"]}]}`,
			"desired.objects.0.policy.0: mine matches 0 of the alternatives"},
		{"desired", `{"updateGroups": [{"name": "a", "method": "InPlace", "maxUnavailable": "25%"}]}`, ""},
		{"desired", `{"updateGroups": [{"name": "a", "method": "InPlace", "maxUnavailable": "all"}]}`,
			"desired.updateGroups.0.maxUnavailable: all matches 0 of the alternatives"},
		{"desired", `{"updateGroups": [{"name": "a", "method": "InPlace", "maxUnavailable": 4294967296}]}`,
			"desired.updateGroups.0.maxUnavailable: 4.294967296e+09 matches 0 of the alternatives"},
		{"failure", `{"reason": "A"}`, "failure: has no message"},
		{"manifest", `{"name": "a", "primary": ` + kind + `}`, ""},
	} {
		if problem := checked(t, one.name, one.document); problem != one.problem {
			t.Errorf("%s: %s: %q, not %q", one.name, one.document, problem, one.problem)
		}
	}
}

func TestKeywordsOfAllSchemasAreKnown(t *testing.T) {
	entries, err := schemas.ReadDir("schema")
	if err != nil || len(entries) == 0 {
		t.Fatalf("there are no schemas: %v", err)
	}
	for _, entry := range entries {
		text, err := schemas.ReadFile("schema/" + entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		var schema map[string]any
		decode(t, "schema", text, &schema)
		v := validator{schema}
		definitions, _ := schema["$defs"].(map[string]any)
		all := []any{schema}
		for _, definition := range definitions {
			all = append(all, definition)
		}
		for len(all) > 0 {
			one, _ := all[0].(map[string]any)
			all = all[1:]
			for keyword, argument := range one {
				err := error(nil)
				if !annotations[keyword] {
					err = v.keyword(one, keyword, argument, nil, "")
				}
				if err != nil && err.Error() == ": guesttest does not know the keyword "+keyword+" of the schema" {
					t.Errorf("%s: %v", entry.Name(), err)
				}
			}
			properties, _ := one["properties"].(map[string]any)
			for _, property := range properties {
				all = append(all, property)
			}
			for _, keyword := range []string{"items", "additionalProperties"} {
				if schema, has := one[keyword]; has {
					all = append(all, schema)
				}
			}
			for _, keyword := range []string{"anyOf", "oneOf"} {
				alternatives, _ := one[keyword].([]any)
				all = append(all, alternatives...)
			}
		}
	}
}
