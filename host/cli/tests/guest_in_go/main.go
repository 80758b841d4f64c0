// A guest that does what spec.does of its primary says: each case uses a part of Go's runtime that a
// component does not have, or has in another way.
package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"innkeeper.dev/sdk-go/guest"
)

var (
	edgeKind      = guest.Kind{APIVersion: "example.com/v1", Kind: "Edge", Plural: "edges"}
	configMapKind = guest.Kind{APIVersion: "v1", Kind: "ConfigMap", Plural: "configmaps"}
	secretKind    = guest.Kind{APIVersion: "v1", Kind: "Secret", Plural: "secrets"}
)

type edge struct {
	guest.Head
	Spec struct {
		Does string `json:"does"`
	} `json:"spec"`
}

type configMap struct {
	guest.Head
	Data map[string]string `json:"data"`
}

type edges struct{}

func init() { guest.Export(edges{}) }

func main() {}

func (edges) Describe() guest.Manifest {
	return guest.ReconcilerOf(edgeKind, "edges", "1.0.0").Reads(configMapKind).Manifest()
}

func (edges) Reconcile(c *guest.Context, o *guest.Observed[edge]) (*guest.Desired, error) {
	does, known := cases[o.Primary.Spec.Does]
	if !known {
		return nil, guest.Fail("Unknown", "there is no case %s", o.Primary.Spec.Does).Permanent()
	}
	result, err := does(c)
	return guest.Complete().Status(guest.Fields{"result": result}), err
}

// live is what the collector must keep.
var live [][]byte

var cases = map[string]func(*guest.Context) (any, error){
	"print": func(*guest.Context) (any, error) {
		fmt.Print("a line ", "in parts\nund eine zweite für Zürich\n\n")
		fmt.Fprint(os.Stderr, "a line without an end")
		fmt.Println(strings.Repeat("ü", 2500))
		return nil, nil
	},
	"collect": func(*guest.Context) (any, error) {
		// 44 MiB stay, 125 MiB go.
		for range 44 << 4 {
			live = append(live, make([]byte, 1<<16))
		}
		for range 2000 {
			live[0] = make([]byte, 1<<16)
		}
		return len(live), nil
	},
	"read": func(c *guest.Context) (any, error) {
		sizes := []int{}
		for range 20 {
			one, err := guest.Get[configMap](c, configMapKind, "default", "large")
			if err != nil {
				return nil, err
			}
			sizes = append(sizes, len(one.Data["text"]))
		}
		all, err := guest.List[configMap](c, configMapKind, "default", "")
		if err != nil {
			return nil, err
		}
		_, missing := guest.Get[configMap](c, configMapKind, "default", "none")
		_, undeclared := guest.Get[configMap](c, secretKind, "default", "large")
		return []any{sizes[19], len(all), fmt.Sprint(missing), fmt.Sprint(undeclared)}, nil
	},
	"wait": func(c *guest.Context) (any, error) {
		begun, now := time.Now(), c.Now()
		time.Sleep(time.Hour)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		<-ctx.Done()
		return []any{time.Since(begun).String(), c.Now().Sub(now).String(), c.Now().Year()}, nil
	},
	"goroutines": func(*guest.Context) (any, error) {
		var group sync.WaitGroup
		sums := make(chan int, 100)
		for i := range 100 {
			group.Add(1)
			go func() {
				defer group.Done()
				sums <- i
			}()
		}
		group.Wait()
		close(sums)
		sum := 0
		for one := range sums {
			sum += one
		}
		return sum, nil
	},
	"random": func(*guest.Context) (any, error) {
		keys := []string{}
		for key := range map[string]int{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7} {
			keys = append(keys, key)
		}
		return []any{strings.Join(keys, ""), rand.Int64()}, nil
	},
	"system": func(*guest.Context) (any, error) {
		_, file := os.ReadFile("/etc/passwd")
		return []any{len(os.Environ()), len(os.Args), fmt.Sprint(file)}, nil
	},
	"panic": func(*guest.Context) (any, error) {
		var none map[string]string
		none["a"] = "b"
		return nil, nil
	},
	"panic-elsewhere": func(*guest.Context) (any, error) {
		go panic("in another goroutine")
		time.Sleep(time.Second)
		return nil, nil
	},
	"deadlock": func(*guest.Context) (any, error) {
		<-make(chan int)
		return nil, nil
	},
	"exit": func(*guest.Context) (any, error) {
		fmt.Print("the last words")
		os.Exit(3)
		return nil, nil
	},
	"memory": func(*guest.Context) (any, error) {
		for {
			live = append(live, make([]byte, 1<<20))
		}
	},
	"forever": func(*guest.Context) (any, error) {
		for {
			live = live[:0]
		}
	},
}
