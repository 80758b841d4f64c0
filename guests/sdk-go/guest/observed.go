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

	head       Head
	owned      []ObservedObject
	parameters json.RawMessage
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
func (o *Observed[P]) Name() string { return o.head.Metadata.Name }

// Namespace returns the namespace of the primary; it is empty for cluster-scoped kinds.
func (o *Observed[P]) Namespace() string { return o.head.Metadata.Namespace }

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
	var all []Owned[T]
	for _, one := range o.owned {
		var head Head
		if err := json.Unmarshal(one.Object, &head); err != nil {
			return nil, fmt.Errorf("cannot read an object of the primary: %w", err)
		}
		if head.APIVersion != kind.APIVersion || head.Kind != kind.Kind {
			continue
		}
		decoded, err := object[T](kind.Kind, one.Object)
		if err != nil {
			return nil, err
		}
		all = append(all, Owned[T]{Object: *decoded, Readiness: one.Readiness})
	}
	return all, nil
}

// OwnedNamed returns the object of a kind and name that belongs to the primary, in its namespace; nil
// if there is none.
func OwnedNamed[T, P any](o *Observed[P], kind Kind, name string) (*Owned[T], error) {
	for _, one := range o.owned {
		var head Head
		if err := json.Unmarshal(one.Object, &head); err != nil {
			return nil, fmt.Errorf("cannot read an object of the primary: %w", err)
		}
		if head.APIVersion != kind.APIVersion || head.Kind != kind.Kind || head.Name() != name ||
			head.Namespace() != o.Namespace() {
			continue
		}
		decoded, err := object[T](kind.Kind, one.Object)
		if err != nil {
			return nil, err
		}
		return &Owned[T]{Object: *decoded, Readiness: one.Readiness}, nil
	}
	return nil, nil
}

// decode reads an `observed` document.
func decode[P any](text []byte) (*Observed[P], error) {
	var document ObservedDocument
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("cannot read the observed state: %w", err)
	}
	observed := &Observed[P]{
		Deleting:   document.Deleting,
		Unapplied:  document.Unapplied,
		Unserved:   document.Unserved,
		owned:      document.Owned,
		parameters: document.Parameters,
	}
	if err := json.Unmarshal(document.Object, &observed.head); err != nil {
		return nil, fmt.Errorf("cannot read the primary: %w", err)
	}
	if err := json.Unmarshal(document.Object, &observed.Primary); err != nil {
		return nil, Fail("BadPrimary", "cannot read the primary: %v", err).Permanent()
	}
	return observed, nil
}
