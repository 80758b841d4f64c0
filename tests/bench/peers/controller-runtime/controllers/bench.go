// Package controllers holds the reconciler of Benches.
package controllers

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"innkeeper.dev/tests/bench/peers/api"
)

// BenchReconciler makes a Deployment and a Service of each Bench.
type BenchReconciler struct {
	client.Client
	Scheme *runtime.Scheme
}

// SetupWithManager registers the reconciler. An update of the status of a Bench does not wake it.
func (r *BenchReconciler) SetupWithManager(mgr ctrl.Manager, maxConcurrentReconciles int) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&api.Bench{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: maxConcurrentReconciles}).
		Complete(r)
}

// Reconcile makes the objects of one Bench what its spec says.
func (r *BenchReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var bench api.Bench
	if err := r.Get(ctx, req.NamespacedName, &bench); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	deployment := &appsv1.Deployment{ObjectMeta: objectMeta(&bench)}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		setDeployment(deployment, &bench)
		return controllerutil.SetControllerReference(&bench, deployment, r.Scheme)
	})
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("cannot write the Deployment: %w", err)
	}
	service := &corev1.Service{ObjectMeta: objectMeta(&bench)}
	_, err = controllerutil.CreateOrUpdate(ctx, r.Client, service, func() error {
		setService(service, &bench)
		return controllerutil.SetControllerReference(&bench, service, r.Scheme)
	})
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("cannot write the Service: %w", err)
	}
	return ctrl.Result{}, r.updateStatus(ctx, &bench, deployment)
}

// updateStatus writes the status if it differs.
func (r *BenchReconciler) updateStatus(
	ctx context.Context, bench *api.Bench, deployment *appsv1.Deployment,
) error {
	old := bench.Status.DeepCopy()
	bench.Status.ObservedGeneration = bench.Generation
	bench.Status.ReadyReplicas = deployment.Status.ReadyReplicas
	condition := metav1.Condition{
		Type:               "Ready",
		Status:             metav1.ConditionFalse,
		Reason:             "InProgress",
		ObservedGeneration: bench.Generation,
		Message: fmt.Sprintf("%d of %d replicas are ready",
			deployment.Status.ReadyReplicas, bench.Spec.Replicas),
	}
	if deployment.Status.ReadyReplicas == bench.Spec.Replicas {
		condition.Status, condition.Reason = metav1.ConditionTrue, "AllReady"
	}
	meta.SetStatusCondition(&bench.Status.Conditions, condition)
	if equality.Semantic.DeepEqual(old, &bench.Status) {
		return nil
	}
	if err := r.Status().Update(ctx, bench); err != nil {
		return fmt.Errorf("cannot write the status: %w", err)
	}
	return nil
}

func objectMeta(bench *api.Bench) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: bench.Name, Namespace: bench.Namespace}
}

// setDeployment sets only the fields that a Bench decides, so that defaults of the API server stay.
func setDeployment(deployment *appsv1.Deployment, bench *api.Bench) {
	labels := map[string]string{"app": bench.Name}
	deployment.Labels = labels
	deployment.Spec.Replicas = &bench.Spec.Replicas
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	template := &deployment.Spec.Template
	template.Labels = labels
	if len(template.Spec.Containers) != 1 {
		template.Spec.Containers = make([]corev1.Container, 1)
	}
	container := &template.Spec.Containers[0]
	container.Name = "app"
	container.Image = bench.Spec.Image
	if len(container.Ports) != 1 {
		container.Ports = make([]corev1.ContainerPort, 1)
	}
	container.Ports[0].Name = "http"
	container.Ports[0].ContainerPort = 8080
	container.Ports[0].Protocol = corev1.ProtocolTCP
}

// setService sets only the fields that a Bench decides.
func setService(service *corev1.Service, bench *api.Bench) {
	labels := map[string]string{"app": bench.Name}
	service.Labels = labels
	service.Spec.Selector = labels
	if len(service.Spec.Ports) != 1 {
		service.Spec.Ports = make([]corev1.ServicePort, 1)
	}
	port := &service.Spec.Ports[0]
	port.Name = "http"
	port.Port = 80
	port.TargetPort = intstr.FromString("http")
	port.Protocol = corev1.ProtocolTCP
}
