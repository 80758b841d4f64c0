// Kubernetes' own specs of the API machinery that need no node, as one program. The upstream test
// program waits for nodes and links the drivers of all clouds and storage systems; this one
// registers the specs of two packages, unchanged, behind a set-up that waits for nothing.
package main

import (
	"context"
	"flag"
	"os"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/testinit"
	conformancetestdata "k8s.io/kubernetes/test/conformance/testdata"
	commontest "k8s.io/kubernetes/test/e2e/common"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"
	"k8s.io/kubernetes/test/e2e/framework/testfiles"
	e2etestingmanifests "k8s.io/kubernetes/test/e2e/testing-manifests"
	testfixtures "k8s.io/kubernetes/test/fixtures"

	_ "k8s.io/kubernetes/test/e2e/apimachinery"
	_ "k8s.io/kubernetes/test/e2e/auth"
	_ "k8s.io/kubernetes/test/e2e/feature"
	_ "k8s.io/kubernetes/test/utils/format"
)

var _ = ginkgo.SynchronizedBeforeSuite(func(context.Context) []byte { return nil },
	func(context.Context, []byte) {
		commontest.CurrentSuite = commontest.E2E
		// Upstream reads it from the Service `kubernetes`.
		framework.TestContext.IPFamily = "ipv4"
	})

// failure is all that ginkgo needs of a testing.T.
type failure struct{ failed bool }

func (f *failure) Fail() { f.failed = true }

func main() {
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.Parse()
	testfiles.AddFileSource(e2etestingmanifests.GetE2ETestingManifestsFS())
	testfiles.AddFileSource(testfixtures.GetTestFixturesFS())
	testfiles.AddFileSource(conformancetestdata.GetConformanceTestdataFS())
	framework.AfterReadingAllFlags(&framework.TestContext)
	logs.InitLogs()
	gomega.RegisterFailHandler(framework.Fail)
	suite, reporter := framework.CreateGinkgoConfig()
	suite.RandomizeAllSpecs = false
	var t failure
	if !ginkgo.RunSpecs(&t, "specs without nodes", suite, reporter) || t.failed {
		os.Exit(1)
	}
}
