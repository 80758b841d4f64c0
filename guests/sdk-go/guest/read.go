package guest

import (
	"encoding/json"
	"fmt"
)

// Get reads an object of a kind that the manifest declares. The host runs the guest again when the
// answer changes. The namespace is empty for cluster-scoped kinds.
//
// errors.Is tells why there is none: [ErrNotFound], [ErrNotServed] and the others.
func Get[T any](c *Context, kind Kind, namespace, name string) (*T, error) {
	text, err := c.host.Get(kind.APIVersion, kind.Kind, namespace, name)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s %s: %w", kind.Kind, path(namespace, name), err)
	}
	var observed members
	if err := json.Unmarshal([]byte(text), &observed); err != nil {
		return nil, fmt.Errorf("cannot read %s %s: %w", kind.Kind, path(namespace, name), err)
	}
	return object[T](kind.Kind, observed["object"])
}

// List reads the objects of a kind that the manifest declares, ordered by namespace and name. An
// empty namespace means all namespaces that the module reads, an empty selector (in Kubernetes'
// syntax) all objects.
func List[T any](c *Context, kind Kind, namespace, labelSelector string) ([]T, error) {
	text, err := c.host.List(kind.APIVersion, kind.Kind, namespace, labelSelector)
	if err != nil {
		return nil, fmt.Errorf("cannot list objects of %s: %w", kind.Kind, err)
	}
	var list struct {
		Items []members `json:"items"`
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("cannot list objects of %s: %w", kind.Kind, err)
	}
	objects := make([]T, 0, len(list.Items))
	for _, item := range list.Items {
		decoded, err := object[T](kind.Kind, item["object"])
		if err != nil {
			return nil, err
		}
		objects = append(objects, *decoded)
	}
	return objects, nil
}

func path(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// object decodes an object of the cluster.
func object[T any](kind string, text json.RawMessage) (*T, error) {
	decoded := new(T)
	if err := json.Unmarshal(text, decoded); err != nil {
		var one identity
		_ = json.Unmarshal(text, &one)
		name := path(one.Metadata.Namespace, one.Metadata.Name)
		return nil, fmt.Errorf("%s %s is not as %T has it: %w", kind, name, *decoded, err)
	}
	return decoded, nil
}

// ReadError says why a read has no answer.
type ReadError struct {
	// Case is the position in the contract's variant `read-error`.
	Case uint32
	// Text has the details, if there are any.
	Text string
}

// Compare with errors.Is.
var (
	// ErrNotFound means that no object has this name. The host runs the guest again when one is
	// created.
	ErrNotFound = &ReadError{Case: 0}
	// ErrNotServed means that the API server does not serve the kind. The host runs the guest again
	// when it does.
	ErrNotServed = &ReadError{Case: 1}
	// ErrForbidden means that RBAC does not let the module's ServiceAccount read it.
	ErrForbidden = &ReadError{Case: 2}
	// ErrUndeclared means that the manifest declares the kind neither as the primary nor as owned
	// nor as read.
	ErrUndeclared = &ReadError{Case: 3}
	// ErrInvalid means that an argument is malformed, for example the label selector.
	ErrInvalid = &ReadError{Case: 4}
)

// Error returns the reason, and the details.
func (e *ReadError) Error() string {
	reasons := [...]string{
		"not found",
		"the API server does not serve the kind",
		"forbidden",
		"the manifest does not declare the kind",
		"invalid",
	}
	reason := "unknown reason"
	if int(e.Case) < len(reasons) {
		reason = reasons[e.Case]
	}
	if e.Text != "" {
		return reason + ": " + e.Text
	}
	return reason
}

// Is compares the cases, so that errors.Is(err, ErrForbidden) holds whatever the details are.
func (e *ReadError) Is(target error) bool {
	other, is := target.(*ReadError)
	return is && other.Case == e.Case
}
