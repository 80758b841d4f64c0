package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopyInto copies the Bench into another, as controller-gen writes it.
func (in *Bench) DeepCopyInto(out *Bench) {
	*out = *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	in.Status.DeepCopyInto(&out.Status)
}

// DeepCopy copies the Bench.
func (in *Bench) DeepCopy() *Bench {
	out := new(Bench)
	in.DeepCopyInto(out)
	return out
}

// DeepCopyObject copies the Bench.
func (in *Bench) DeepCopyObject() runtime.Object {
	return in.DeepCopy()
}

// DeepCopyInto copies the status into another.
func (in *BenchStatus) DeepCopyInto(out *BenchStatus) {
	*out = *in
	if in.Conditions != nil {
		out.Conditions = make([]metav1.Condition, len(in.Conditions))
		for index := range in.Conditions {
			in.Conditions[index].DeepCopyInto(&out.Conditions[index])
		}
	}
}

// DeepCopy copies the status.
func (in *BenchStatus) DeepCopy() *BenchStatus {
	out := new(BenchStatus)
	in.DeepCopyInto(out)
	return out
}

// DeepCopyObject copies the list.
func (in *BenchList) DeepCopyObject() runtime.Object {
	out := &BenchList{TypeMeta: in.TypeMeta}
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Bench, len(in.Items))
	for index := range in.Items {
		in.Items[index].DeepCopyInto(&out.Items[index])
	}
	return out
}
