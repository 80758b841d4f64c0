// Prints what the OpenAPI document does not say of the Kubernetes API. `cargo xtask openapi` reads it.
//
// "fields": for each type as OpenAPI names it, how Go writes its fields. A zero of a plain field with omitempty is
// left out ("zero"), a list or map without omitempty is written as null ("null"), and a struct with omitzero is
// left out when empty ("omit").
//
// "wire": for each type, the number of each field in protobuf, with its name in JSON; or, if JSON has the members
// of the field in its place, their numbers and names.
//
// "columns": for each kind, the columns of its tables.
package main

import (
	"context"
	"encoding/json"
	"os"
	"reflect"
	"strconv"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	aggregatorapi "k8s.io/kube-aggregator/pkg/apis/apiregistration"
	aggregator "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	apiservices "k8s.io/kube-aggregator/pkg/registry/apiservice/etcd"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	_ "k8s.io/kubernetes/pkg/apis/flowcontrol/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	"k8s.io/kubernetes/pkg/printers"
	printersinternal "k8s.io/kubernetes/pkg/printers/internalversion"
)

type fields struct {
	Zero  []string `json:"zero,omitempty"`
	Null  []string `json:"null,omitempty"`
	Omit  []string `json:"omit,omitempty"`
	Plain []string `json:"plain,omitempty"`
}

var seen = map[string]*fields{}
var structs = map[string]reflect.Type{}

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
	structs[name(t)] = t
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

// The numbers of the fields of a type in protobuf.
func wire(t reflect.Type) map[string]any {
	numbers := map[string]any{}
	for i := 0; i < t.NumField(); i++ {
		field := t.Field(i)
		name := strings.Split(field.Tag.Get("json"), ",")[0]
		parts := strings.Split(field.Tag.Get("protobuf"), ",")
		if name == "-" || len(parts) < 2 {
			continue
		}
		if _, err := strconv.Atoi(parts[1]); err != nil {
			continue
		}
		if name != "" {
			numbers[parts[1]] = name
		} else if field.Anonymous && element(field.Type).Kind() == reflect.Struct {
			numbers[parts[1]] = wire(element(field.Type))
		}
	}
	return numbers
}

// The columns of each kind that has some of its own.
func columns() map[string]any {
	all := map[string]any{}
	generator := printers.NewTableGenerator().With(printersinternal.AddHandlers)
	for kind := range legacyscheme.Scheme.AllKnownTypes() {
		if kind.Version != runtime.APIVersionInternal {
			continue
		}
		object, err := legacyscheme.Scheme.New(kind)
		if err != nil {
			panic(err)
		}
		table, err := generator.GenerateTable(object, printers.GenerateOptions{Wide: true})
		if err == nil {
			all[kind.Group+"/"+kind.Kind] = table.ColumnDefinitions
		}
	}
	// The aggregator prints its own kind.
	table, err := (&apiservices.REST{}).ConvertToTable(context.Background(), &aggregatorapi.APIServiceList{}, nil)
	if err != nil {
		panic(err)
	}
	all["apiregistration.k8s.io/APIService"] = table.ColumnDefinitions
	return all
}

func main() {
	types := runtime.NewScheme()
	if err := scheme.AddToScheme(types); err != nil {
		panic(err)
	}
	if err := apiextensions.AddToScheme(types); err != nil {
		panic(err)
	}
	if err := aggregator.AddToScheme(types); err != nil {
		panic(err)
	}
	for _, t := range types.AllKnownTypes() {
		walk(t)
	}
	numbers := map[string]any{}
	for key, t := range structs {
		numbers[key] = wire(t)
	}
	for key, out := range seen {
		if len(out.Zero)+len(out.Null)+len(out.Omit)+len(out.Plain) == 0 {
			delete(seen, key)
		}
	}
	all := map[string]any{"fields": seen, "wire": numbers, "columns": columns()}
	if err := json.NewEncoder(os.Stdout).Encode(all); err != nil {
		panic(err)
	}
}
