package guest

import (
	"encoding/json"
	"fmt"
	"time"
)

// Observed is the observed state: the argument of [Reconciler.Reconcile].
type Observed[P any] struct {
	// Primary is the primary.
	Primary P
	// Deleting says that the primary is being deleted and still has this guest's finalizer. The
	// guest then returns the objects that must remain for now, and [Desired.Finalized] when it is
	// done.
	Deleting bool
	// Unapplied has the desired objects that the host could not apply after the previous run.
	Unapplied []Unapplied
	// Unserved has the kinds of the manifest that the API server does not serve.
	Unserved []Kind

	identity   identity
	owned      json.RawMessage
	parameters json.RawMessage
}

// members are those of an object, each as its text: what encoding/json learns of a struct costs more
// than reading a text, and each run starts without it.
type members map[string]json.RawMessage

// identity says which object a text is.
type identity struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
}

// Head is the part that all objects of Kubernetes have. Embed it in a struct of your own.
type Head struct {
	APIVersion string   `json:"apiVersion,omitempty"`
	Kind       string   `json:"kind,omitempty"`
	Metadata   Metadata `json:"metadata"`
}

// Metadata is the part of an object's metadata that guests read.
type Metadata struct {
	Name              string            `json:"name,omitempty"`
	Namespace         string            `json:"namespace,omitempty"`
	UID               string            `json:"uid,omitempty"`
	Generation        int64             `json:"generation,omitempty"`
	CreationTimestamp *time.Time        `json:"creationTimestamp,omitempty"`
	DeletionTimestamp *time.Time        `json:"deletionTimestamp,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	Annotations       map[string]string `json:"annotations,omitempty"`
}

// Name returns the name of the object.
func (h *Head) Name() string { return h.Metadata.Name }

// Namespace returns the namespace of the object; it is empty for cluster-scoped kinds.
func (h *Head) Namespace() string { return h.Metadata.Namespace }

// Name returns the name of the primary.
func (o *Observed[P]) Name() string { return o.identity.Metadata.Name }

// Namespace returns the namespace of the primary; it is empty for cluster-scoped kinds.
func (o *Observed[P]) Namespace() string { return o.identity.Metadata.Namespace }

// Parameters decodes `parameters` of the Module, which the host has validated against the schema of
// [Describe.Parameters]. It leaves the value as it is if there are none.
func (o *Observed[P]) Parameters(into any) error {
	if len(o.parameters) == 0 {
		return nil
	}
	if err := json.Unmarshal(o.parameters, into); err != nil {
		return Fail("BadParameters", "the parameters of the Module: %v", err).Permanent()
	}
	return nil
}

// Owned is an object that belongs to the primary.
type Owned[T any] struct {
	// Object is the object.
	Object T
	// Readiness says whether it is ready, by the rules of kstatus.
	Readiness Readiness
}

// IsReady says whether the object is ready.
func (o *Owned[T]) IsReady() bool { return o.Readiness.State == ReadinessStateReady }

// OwnedAs returns the objects of a kind that belong to the primary, ordered by namespace and name.
func OwnedAs[T, P any](o *Observed[P], kind Kind) ([]Owned[T], error) {
	return owned[T](o, kind, func(identity) bool { return true })
}

// OwnedNamed returns the object of a kind and name that belongs to the primary, in its namespace; nil
// if there is none.
func OwnedNamed[T, P any](o *Observed[P], kind Kind, name string) (*Owned[T], error) {
	all, err := owned[T](o, kind, func(one identity) bool {
		return one.Metadata.Name == name && one.Metadata.Namespace == o.Namespace()
	})
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}

func owned[T, P any](o *Observed[P], kind Kind, matches func(identity) bool) ([]Owned[T], error) {
	if isEmpty(o.owned) {
		return nil, nil
	}
	var texts []members
	if err := json.Unmarshal(o.owned, &texts); err != nil {
		return nil, fmt.Errorf("cannot read the objects of the primary: %w", err)
	}
	var all []Owned[T]
	for _, text := range texts {
		var one identity
		if err := json.Unmarshal(text["object"], &one); err != nil {
			return nil, fmt.Errorf("cannot read an object of the primary: %w", err)
		}
		if one.APIVersion != kind.APIVersion || one.Kind != kind.Kind || !matches(one) {
			continue
		}
		decoded, err := object[T](kind.Kind, text["object"])
		if err != nil {
			return nil, err
		}
		next := Owned[T]{Object: *decoded}
		if err := json.Unmarshal(text["readiness"], &next.Readiness); err != nil {
			return nil, fmt.Errorf("cannot read the readiness of %s: %w", one.Metadata.Name, err)
		}
		all = append(all, next)
	}
	return all, nil
}

// decode reads an `observed` document.
func decode[P any](text []byte) (*Observed[P], error) {
	var document members
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("cannot read the observed state: %w", err)
	}
	observed := &Observed[P]{owned: document["owned"], parameters: document["parameters"]}
	for _, member := range []struct {
		name string
		into any
	}{
		{"object", &observed.identity},
		{"deleting", &observed.Deleting},
		{"unapplied", &observed.Unapplied},
		{"unserved", &observed.Unserved},
	} {
		if isEmpty(document[member.name]) {
			continue
		}
		if err := json.Unmarshal(document[member.name], member.into); err != nil {
			return nil, fmt.Errorf("cannot read the observed state: %s: %w", member.name, err)
		}
	}
	if err := json.Unmarshal(document["object"], &observed.Primary); err != nil {
		return nil, Fail("BadPrimary", "cannot read the primary: %v", err).Permanent()
	}
	return observed, nil
}

func isEmpty(list json.RawMessage) bool { return len(list) == 0 || string(list) == "[]" }
