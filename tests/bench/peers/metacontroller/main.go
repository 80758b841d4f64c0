// Command metacontroller is the sync hook of Benches for Metacontroller.
package main

import (
	"encoding/json"
	"flag"
	"log"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"innkeeper.dev/tests/bench/peers/api"
)

// syncRequest is the body of a request of Metacontroller.
type syncRequest struct {
	Parent   api.Bench                                        `json:"parent"`
	Children map[string]map[string]*unstructured.Unstructured `json:"children"`
}

// syncResponse is the answer: the status and the children that should exist.
type syncResponse struct {
	Status   api.BenchStatus `json:"status"`
	Children []any           `json:"children"`
}

func main() {
	address := flag.String("address", "127.0.0.1:8090", "address of the hook")
	flag.Parse()
	http.HandleFunc("/sync", sync)
	log.Fatal(http.ListenAndServe(*address, nil))
}

func sync(w http.ResponseWriter, r *http.Request) {
	var request syncRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	bench := &request.Parent
	response := syncResponse{
		Status:   status(bench, readyReplicas(&request)),
		Children: []any{deployment(bench), service(bench)},
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(response); err != nil {
		log.Print(err)
	}
}

// readyReplicas reads the status of the Deployment; Metacontroller groups children by kind.
func readyReplicas(request *syncRequest) int32 {
	deployment := request.Children["Deployment.apps/v1"][request.Parent.Name]
	if deployment == nil {
		return 0
	}
	ready, _, _ := unstructured.NestedInt64(deployment.Object, "status", "readyReplicas")
	return int32(ready)
}
