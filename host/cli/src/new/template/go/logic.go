@reconciler@// Each @kind@ becomes a ConfigMap with its text.
@decorator@// Each @kind@ with the annotation @name@/label gets the label @name@ with its value.
package main

@reconciler@import (
@reconciler@	_ "embed"
@reconciler@
@reconciler@	"innkeeper.dev/sdk-go/guest"
@reconciler@)
@reconciler@
@reconciler@//go:embed crd.json
@reconciler@var crd []byte
@reconciler@
@reconciler@var configMapKind = guest.Kind{APIVersion: "v1", Kind: "ConfigMap", Plural: "configmaps"}
@decorator@import "innkeeper.dev/sdk-go/guest"

var primaryKind = guest.Kind{
	APIVersion: "@api_version@",
	Kind:       "@kind@",
	Plural:     "@plural@",
@cluster@	Scope:      guest.ScopeCluster,
}

// @kind@ has the fields that the guest reads.
type @kind@ struct {
	guest.Head
@reconciler@	Spec struct {
@namespaced_reconciler@		Text string `json:"text"`
@cluster_reconciler@		Text      string `json:"text"`
@cluster_reconciler@		Namespace string `json:"namespace"`
@reconciler@	} `json:"spec"`
}

type reconciler struct{}

// Describe returns the manifest.
func (reconciler) Describe() guest.Manifest {
@reconciler@	return guest.ReconcilerOf(primaryKind, "@name@", "0.1.0").
@reconciler@		Owns(configMapKind).
@reconciler@		CRD(crd).
@reconciler@		Manifest()
@decorator@	// The guest only merges: its ServiceAccount needs no rights to create or delete objects.
@decorator@	return guest.DecoratorOf(primaryKind, "@name@", "0.1.0").
@decorator@		MergesInto(primaryKind).
@decorator@		Manifest()
}

// Reconcile computes the desired state.
func (reconciler) Reconcile(_ *guest.Context, o *guest.Observed[@kind@]) (*guest.Desired, error) {
@reconciler@	spec := o.Primary.Spec
@reconciler@	data := guest.Fields{"text": spec.Text}
@reconciler@	configMap := configMapKind.Object(o.Name(), guest.Fields{"data": data})
@cluster_reconciler@	configMap.InNamespace(spec.Namespace)
@reconciler@	return guest.Complete().Object(configMap).Status(guest.Fields{"configMap": o.Name()}), nil
@decorator@	label, asked := o.Primary.Metadata.Annotations["@name@/label"]
@decorator@	if !asked {
@decorator@		return guest.Complete(), nil
@decorator@	}
@decorator@	merged := primaryKind.Object(o.Name(), nil).Labels(map[string]string{"@name@": label})
@decorator@	return guest.Complete().Object(merged, guest.PolicyMerge), nil
}
