package main

import (
	"testing"

	"innkeeper.dev/sdk-go/guesttest"
)

@reconciler@func TestConfigMapHasTheNameAndTheText(t *testing.T) {
@namespaced_reconciler@	const primary = `{"metadata": {"name": "first"}, "spec": {"text": "Good day"}}`
@cluster_reconciler@	const primary = `{"metadata": {"name": "first"}, "spec": {"text": "Good day", "namespace": "default"}}`
@reconciler@	result := guesttest.Run(t, reconciler{}, guesttest.Given{Primary: primary}).IsComplete()
@reconciler@	configMap := result.Object(configMapKind, "first")
@reconciler@	if text := configMap.Text("data.text"); text != "Good day" {
@reconciler@		t.Errorf("the text is %q", text)
@reconciler@	}
@reconciler@	if name := result.Status().Text("configMap"); name != "first" {
@reconciler@		t.Errorf("the status has the ConfigMap %q", name)
@reconciler@	}
@reconciler@}
@decorator@func TestLabelHasTheValueOfTheAnnotation(t *testing.T) {
@decorator@	const primary = `{"metadata": {"name": "first", "annotations": {"@name@/label": "web"}}}`
@decorator@	result := guesttest.Run(t, reconciler{}, guesttest.Given{Primary: primary}).IsComplete()
@decorator@	merged := result.Object(primaryKind, "first")
@decorator@	if label := merged.Text("metadata.labels.@name@"); label != "web" {
@decorator@		t.Errorf("the label is %q", label)
@decorator@	}
@decorator@	if len(merged.Policy) != 1 || merged.Policy[0] != "merge" {
@decorator@		t.Errorf("the policy is %v", merged.Policy)
@decorator@	}
@decorator@}
@decorator@
@decorator@func TestObjectWithoutTheAnnotationIsNotTouched(t *testing.T) {
@decorator@	given := guesttest.Given{Primary: `{"metadata": {"name": "first"}}`}
@decorator@	result := guesttest.Run(t, reconciler{}, given).IsComplete()
@decorator@	if len(result.Desired.Objects) != 0 {
@decorator@		t.Errorf("the guest desires %v", result.Desired.Objects)
@decorator@	}
@decorator@}
