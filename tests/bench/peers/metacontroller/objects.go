package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"innkeeper.dev/tests/bench/peers/api"
)

type object = map[string]any

// deployment and service hold only the fields that a Bench decides: Metacontroller applies them.
func deployment(bench *api.Bench) object {
	labels := object{"app": bench.Name}
	container := object{
		"name":  "app",
		"image": bench.Spec.Image,
		"ports": []any{object{"name": "http", "containerPort": 8080, "protocol": "TCP"}},
	}
	return object{
		"apiVersion": "apps/v1",
		"kind":       "Deployment",
		"metadata":   object{"name": bench.Name, "namespace": bench.Namespace, "labels": labels},
		"spec": object{
			"replicas": bench.Spec.Replicas,
			"selector": object{"matchLabels": labels},
			"template": object{
				"metadata": object{"labels": labels},
				"spec":     object{"containers": []any{container}},
			},
		},
	}
}

func service(bench *api.Bench) object {
	labels := object{"app": bench.Name}
	return object{
		"apiVersion": "v1",
		"kind":       "Service",
		"metadata":   object{"name": bench.Name, "namespace": bench.Namespace, "labels": labels},
		"spec": object{
			"selector": labels,
			"ports": []any{
				object{"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"},
			},
		},
	}
}

// status keeps the time of the condition while the status of the condition is the same.
func status(bench *api.Bench, readyReplicas int32) api.BenchStatus {
	status := bench.Status.DeepCopy()
	status.ObservedGeneration = bench.Generation
	status.ReadyReplicas = readyReplicas
	condition := metav1.Condition{
		Type:               "Ready",
		Status:             metav1.ConditionFalse,
		Reason:             "InProgress",
		ObservedGeneration: bench.Generation,
		Message:            fmt.Sprintf("%d of %d replicas are ready", readyReplicas, bench.Spec.Replicas),
	}
	if readyReplicas == bench.Spec.Replicas {
		condition.Status, condition.Reason = metav1.ConditionTrue, "AllReady"
	}
	meta.SetStatusCondition(&status.Conditions, condition)
	return *status
}
