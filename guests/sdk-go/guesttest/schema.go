package guesttest

import (
	"embed"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

//go:embed schema
var schemas embed.FS

// conforms fails the test if a document does not conform to a schema of the contract. The host
// refuses unknown members, since they are probably typos.
func conforms(t testing.TB, name string, text []byte) {
	t.Helper()
	read, err := schemas.ReadFile("schema/" + name + ".json")
	if err != nil {
		t.Fatalf("cannot read the schema of %s: %v", name, err)
	}
	var schema map[string]any
	decode(t, "schema", read, &schema)
	var document any
	decode(t, name, text, &document)
	if err := (validator{schema}).check(schema, document, name); err != nil {
		t.Fatalf("%v; the document: %s", err, text)
	}
}

// validator knows the keywords that the schemas of the contract have.
type validator struct {
	root map[string]any
}

// annotations are keywords that restrict nothing.
var annotations = map[string]bool{
	"$id": true, "$schema": true, "$defs": true, "title": true, "description": true,
	"default": true, "format": true, "examples": true, "x-kubernetes-int-or-string": true,
}

func (v validator) check(schema any, value any, path string) error {
	if _, always := schema.(bool); always {
		return nil
	}
	members, is := schema.(map[string]any)
	if !is {
		return fmt.Errorf("%s: the schema is no object", path)
	}
	for _, keyword := range slices.Sorted(maps.Keys(members)) {
		if annotations[keyword] {
			continue
		}
		if err := v.keyword(members, keyword, members[keyword], value, path); err != nil {
			return err
		}
	}
	return nil
}

func (v validator) keyword(schema map[string]any, keyword string, argument, value any, path string) error {
	object, _ := value.(map[string]any)
	list, _ := value.([]any)
	text, isText := value.(string)
	number, isNumber := value.(float64)
	limit, _ := argument.(float64)
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%s: %s", path, fmt.Sprintf(format, args...))
	}
	switch keyword {
	case "$ref":
		name := strings.TrimPrefix(argument.(string), "#/$defs/")
		definitions, _ := v.root["$defs"].(map[string]any)
		definition, is := definitions[name]
		if !is {
			return refuse("the schema has no definition %s", name)
		}
		return v.check(definition, value, path)
	case "type":
		if !hasType(argument, value) {
			return refuse("is not of type %v", argument)
		}
	case "const":
		if !reflect.DeepEqual(argument, value) {
			return refuse("is not %v", argument)
		}
	case "oneOf", "anyOf":
		matches := 0
		for _, one := range argument.([]any) {
			if v.check(one, value, path) == nil {
				matches++
			}
		}
		if matches == 0 || keyword == "oneOf" && matches > 1 {
			return refuse("%v matches %d of the alternatives", value, matches)
		}
	case "required":
		for _, name := range argument.([]any) {
			if _, has := object[name.(string)]; object != nil && !has {
				return refuse("has no %v", name)
			}
		}
	case "properties":
		properties := argument.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			if member, has := object[name]; has {
				if err := v.check(properties[name], member, path+"."+name); err != nil {
					return err
				}
			}
		}
	case "additionalProperties":
		properties, _ := schema["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(object)) {
			if _, known := properties[name]; known {
				continue
			}
			if argument == false {
				return refuse("has the unknown member %s", name)
			}
			if err := v.check(argument, object[name], path+"."+name); err != nil {
				return err
			}
		}
	case "items":
		for index, item := range list {
			if err := v.check(argument, item, fmt.Sprintf("%s.%d", path, index)); err != nil {
				return err
			}
		}
	case "maxItems":
		if len(list) > int(limit) {
			return refuse("has more than %v items", limit)
		}
	case "maxProperties":
		if len(object) > int(limit) {
			return refuse("has more than %v members", limit)
		}
	case "maxLength":
		if isText && utf8.RuneCountInString(text) > int(limit) {
			return refuse("is longer than %v", limit)
		}
	case "minLength":
		if isText && utf8.RuneCountInString(text) < int(limit) {
			return refuse("is shorter than %v", limit)
		}
	case "minimum":
		if isNumber && number < limit {
			return refuse("is less than %v", limit)
		}
	case "maximum":
		if isNumber && number > limit {
			return refuse("is more than %v", limit)
		}
	case "pattern":
		if isText && !regexp.MustCompile(argument.(string)).MatchString(text) {
			return refuse("does not match %v", argument)
		}
	default:
		return refuse("guesttest does not know the keyword %s of the schema", keyword)
	}
	return nil
}

// hasType says whether a value has one of the types: a name, or a list of names.
func hasType(types, value any) bool {
	names, isList := types.([]any)
	if !isList {
		names = []any{types}
	}
	for _, name := range names {
		var is bool
		switch value := value.(type) {
		case nil:
			is = name == "null"
		case bool:
			is = name == "boolean"
		case string:
			is = name == "string"
		case float64:
			is = name == "number" || name == "integer" && value == math.Trunc(value)
		case []any:
			is = name == "array"
		case map[string]any:
			is = name == "object"
		}
		if is {
			return true
		}
	}
	return false
}
