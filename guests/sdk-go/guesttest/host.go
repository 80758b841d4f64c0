package guesttest

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	"innkeeper.dev/sdk-go/guest"
)

// fakeHost answers reads from a few objects.
type fakeHost struct {
	t        testing.TB
	manifest guest.Manifest
	objects  []string
	now      time.Time
	log      []string
}

func (h *fakeHost) Get(apiVersion, kind, namespace, name string) (string, error) {
	found, err := h.find(apiVersion, kind, namespace)
	if err != nil {
		return "", err
	}
	for _, one := range found {
		if one.head.Name() == name && one.head.Namespace() == namespace {
			return observation(one.text), nil
		}
	}
	return "", guest.ErrNotFound
}

func (h *fakeHost) List(apiVersion, kind, namespace, labelSelector string) (string, error) {
	found, err := h.find(apiVersion, kind, namespace)
	if err != nil {
		return "", err
	}
	items := []string{}
	for _, one := range found {
		matches, err := selects(labelSelector, one.head.Metadata.Labels)
		if err != nil {
			return "", err
		}
		if matches {
			items = append(items, observation(one.text))
		}
	}
	return `{"items":[` + strings.Join(items, ",") + `]}`, nil
}

func (h *fakeHost) Now() time.Time { return h.now }

func (h *fakeHost) Log(_ guest.Level, line string) { h.log = append(h.log, line) }

type object struct {
	head guest.Head
	text string
}

// find returns the objects of a kind in a namespace, or in all, ordered by namespace and name.
func (h *fakeHost) find(apiVersion, kind, namespace string) ([]object, error) {
	if !declares(h.manifest, apiVersion, kind) {
		return nil, guest.ErrUndeclared
	}
	found := []object{}
	for _, text := range h.objects {
		one := object{text: text}
		decode(h.t, "object", []byte(text), &one.head)
		if one.head.APIVersion == apiVersion && one.head.Kind == kind &&
			(namespace == "" || namespace == one.head.Namespace()) {
			found = append(found, one)
		}
	}
	sort.SliceStable(found, func(i, j int) bool {
		a, b := found[i].head, found[j].head
		if a.Namespace() != b.Namespace() {
			return a.Namespace() < b.Namespace()
		}
		return a.Name() < b.Name()
	})
	return found, nil
}

func declares(manifest guest.Manifest, apiVersion, kind string) bool {
	kinds := append([]guest.Kind{manifest.Primary}, manifest.Reads...)
	for _, owned := range manifest.Owned {
		kinds = append(kinds, owned.Kind)
	}
	for _, one := range kinds {
		if one.APIVersion == apiVersion && one.Kind == kind {
			return true
		}
	}
	return false
}

func observation(object string) string {
	text, _ := json.Marshal(map[string]any{
		"object":    json.RawMessage(object),
		"readiness": guest.Readiness{State: guest.ReadinessStateReady},
	})
	return string(text)
}

// selects compares labels with a selector of the forms `key=value`, `key` and `!key`, joined by
// commas.
func selects(selector string, labels map[string]string) (bool, error) {
	if selector == "" {
		return true, nil
	}
	for _, term := range strings.Split(selector, ",") {
		key, value, hasValue := strings.Cut(strings.TrimSpace(term), "=")
		key, absent := strings.CutPrefix(key, "!")
		if strings.ContainsAny(key, " !()=") {
			return false, &guest.ReadError{
				Case: guest.ErrInvalid.Case,
				Text: fmt.Sprintf("guesttest knows only key=value, key and !key, not `%s`", term),
			}
		}
		label, has := labels[key]
		if absent == has || hasValue && label != value {
			return false, nil
		}
	}
	return true, nil
}
