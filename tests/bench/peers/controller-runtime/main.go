// Command controller-runtime is an operator of Benches, written with controller-runtime as its
// documentation teaches.
package main

import (
	"flag"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"innkeeper.dev/tests/bench/peers/api"
	"innkeeper.dev/tests/bench/peers/controller-runtime/controllers"
)

func main() {
	maxConcurrentReconciles := flag.Int("max-concurrent-reconciles", 1, "Benches at the same time")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	log := ctrl.Log.WithName("setup")
	if err := run(*maxConcurrentReconciles); err != nil {
		log.Error(err, "the manager failed")
		os.Exit(1)
	}
}

func run(maxConcurrentReconciles int) error {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	if err := api.AddToScheme(scheme); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "127.0.0.1:0"},
	})
	if err != nil {
		return err
	}
	reconciler := &controllers.BenchReconciler{Client: mgr.GetClient(), Scheme: mgr.GetScheme()}
	if err := reconciler.SetupWithManager(mgr, maxConcurrentReconciles); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}
