// What a Kubernetes node runs of Kubernetes itself, as one program: kubelet, kube-proxy, and
// (since a cluster of one node has no better place) kube-scheduler and CoreDNS, chosen by the
// first argument.
//
// It is another program than the control plane's, so that tests which need no node need not build
// it.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/ready"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var programs = map[string]func(){
	"kubelet":        func() { os.Exit(cli.Run(kubelet.NewKubeletCommand(context.Background()))) },
	"kube-proxy":     func() { os.Exit(cli.Run(proxy.NewProxyCommand())) },
	"kube-scheduler": func() { os.Exit(cli.Run(scheduler.NewSchedulerCommand())) },
	"coredns":        coremain.Run,
}

func main() {
	if len(os.Args) > 1 {
		if program, ok := programs[os.Args[1]]; ok {
			os.Args = os.Args[1:]
			program()
			return
		}
	}
	fmt.Fprintln(os.Stderr, "usage: node kubelet|kube-proxy|kube-scheduler|coredns [flags]")
	os.Exit(2)
}

// The order in which plugins handle a question.
func init() {
	dnsserver.Directives = []string{"ready", "errors", "log", "cache", "kubernetes"}
}
