// Package api holds the types of the group bench.innkeeper.dev.
package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

var (
	// GroupVersion is the group and version of the types.
	GroupVersion = schema.GroupVersion{Group: "bench.innkeeper.dev", Version: "v1"}

	builder = (&scheme.Builder{GroupVersion: GroupVersion}).Register(&Bench{}, &BenchList{})

	// AddToScheme adds the types to a scheme.
	AddToScheme = builder.AddToScheme
)

// Bench becomes a Deployment and a Service of the same name.
type Bench struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   BenchSpec   `json:"spec"`
	Status BenchStatus `json:"status,omitempty"`
}

// BenchSpec is the desired state of a Bench.
type BenchSpec struct {
	// Image of the pods.
	Image string `json:"image"`
	// Number of pods.
	Replicas int32 `json:"replicas"`
}

// BenchStatus is the observed state of a Bench.
type BenchStatus struct {
	// The generation that this status is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Number of ready pods.
	ReadyReplicas int32 `json:"readyReplicas"`
	// Conditions of the Bench.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// BenchList is a list of Benches.
type BenchList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Bench `json:"items"`
}
