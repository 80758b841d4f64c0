// Prints, for each type of the Kubernetes API as OpenAPI names it, how Go writes its fields: what the
// OpenAPI document does not say. A zero of a plain field with omitempty is left out ("zero"), a
// list or map without omitempty is written as null ("null"), and a struct with omitzero is left out when empty
// ("omit"). `cargo xtask openapi` reads it.
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

type fields struct {
	Zero  []string `json:"zero,omitempty"`
	Null  []string `json:"null,omitempty"`
	Omit  []string `json:"omit,omitempty"`
	Plain []string `json:"plain,omitempty"`
}

var seen = map[string]*fields{}

func name(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	host := strings.Split(parts[0], ".")
	for i, j := 0, len(host)-1; i < j; i, j = i+1, j-1 {
		host[i], host[j] = host[j], host[i]
	}
	return strings.Join(append(append(host, parts[1:]...), t.Name()), ".")
}

func element(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t
}

func walk(t reflect.Type) {
	if t.Kind() != reflect.Struct || !strings.HasPrefix(t.PkgPath(), "k8s.io/") {
		return
	}
	if _, ok := seen[name(t)]; ok {
		return
	}
	out := &fields{}
	seen[name(t)] = out
	members(t, out)
}

func members(t reflect.Type, out *fields) {
	for i := 0; i < t.NumField(); i++ {
		field := t.Field(i)
		tag := strings.Split(field.Tag.Get("json"), ",")
		if tag[0] == "-" {
			continue
		}
		if tag[0] == "" {
			if field.Anonymous && field.Type.Kind() == reflect.Struct {
				members(field.Type, out)
			}
			continue
		}
		empty, zero := false, false
		for _, option := range tag[1:] {
			empty = empty || option == "omitempty"
			zero = zero || option == "omitzero"
		}
		switch field.Type.Kind() {
		case reflect.Pointer:
		case reflect.Slice, reflect.Map:
			if !empty && !zero {
				out.Null = append(out.Null, tag[0])
			}
		case reflect.Struct:
			if zero {
				out.Omit = append(out.Omit, tag[0])
			} else if strings.HasSuffix(field.Type.Name(), "Time") {
				out.Null = append(out.Null, tag[0])
			}
		default:
			if empty || zero {
				out.Zero = append(out.Zero, tag[0])
			} else {
				out.Plain = append(out.Plain, tag[0])
			}
		}
		walk(element(field.Type))
	}
}

func main() {
	types := runtime.NewScheme()
	if err := scheme.AddToScheme(types); err != nil {
		panic(err)
	}
	if err := apiextensions.AddToScheme(types); err != nil {
		panic(err)
	}
	for _, t := range types.AllKnownTypes() {
		walk(t)
	}
	for key, out := range seen {
		if len(out.Zero)+len(out.Null)+len(out.Omit)+len(out.Plain) == 0 {
			delete(seen, key)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(seen); err != nil {
		panic(err)
	}
}
