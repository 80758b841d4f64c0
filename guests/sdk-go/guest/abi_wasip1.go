//go:build wasip1

// The contract of wit/guest.wit, as a component's core module has it.

package guest

import (
	"os"
	"runtime/debug"
	"structs"
	"time"
	"unsafe"
)

//go:wasmimport innkeeper:guest/cluster@0.1.0 get
func clusterGet(apiVersion *byte, apiVersionLen uint32, kind *byte, kindLen uint32,
	namespace *byte, namespaceLen uint32, name *byte, nameLen uint32, result *readResult)

//go:wasmimport innkeeper:guest/cluster@0.1.0 list
func clusterList(apiVersion *byte, apiVersionLen uint32, kind *byte, kindLen uint32,
	namespace *byte, namespaceLen uint32, selector *byte, selectorLen uint32, result *readResult)

//go:wasmimport innkeeper:guest/clock@0.1.0 now-ms
func clockNowMs() float64

//go:wasmimport innkeeper:guest/log@0.1.0 write
func logWrite(level int32, message *byte, length uint32)

// memoryLimit is below `limits.memory` of a Module, 64 MiB if left out. Without it the collector lets
// the heap grow to twice what it keeps.
const memoryLimit = 48 << 20

func init() { debug.SetMemoryLimit(memoryLimit) }

// readResult is `result<string, read-error>`: the tag is a byte at 0. The text of an answer is at 4.
// Of an error the case is a byte at 4, and its text is at 8.
type readResult struct {
	_       structs.HostLayout
	tag     uint32
	a, b, c uint32
}

// What crosses stays referenced for the life of the instance, which is one call. The collector does
// not move it.
var (
	kept      [][]byte
	described [2]uint32 // Address and length.
	outcome   [3]uint32 // Tag, address and length.
)

//go:wasmexport cabi_realloc
func cabiRealloc(old unsafe.Pointer, oldSize, align, size uint32) unsafe.Pointer {
	// Aligned for every type of the contract.
	block := make([]uint64, size/8+1)
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(&block[0])), size)
	if old != nil {
		copy(bytes, unsafe.Slice((*byte)(old), min(oldSize, size)))
	}
	kept = append(kept, bytes)
	return unsafe.Pointer(&block[0])
}

//go:wasmexport innkeeper:guest/reconciler@0.1.0#describe
func exportDescribe() unsafe.Pointer {
	if describe == nil {
		panic("the program exports no guest; call guest.Export in `func init()` of package main")
	}
	address, length := keep(describe())
	described = [2]uint32{address, length}
	return unsafe.Pointer(&described)
}

//go:wasmexport innkeeper:guest/reconciler@0.1.0#reconcile
func exportReconcile(text unsafe.Pointer, length uint32) unsafe.Pointer {
	tag, document := reconcile(unsafe.Slice((*byte)(text), length))
	// Ends a line that the guest began; the system of guests logs no empty lines.
	_, _ = os.Stdout.WriteString("\n")
	_, _ = os.Stderr.WriteString("\n")
	address, size := keep(document)
	outcome = [3]uint32{uint32(tag), address, size}
	return unsafe.Pointer(&outcome)
}

func keep(text []byte) (address, length uint32) {
	kept = append(kept, text)
	return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(text)))), uint32(len(text))
}

// here is the host of the component.
var here Host = component{}

type component struct{}

func (component) Get(apiVersion, kind, namespace, name string) (string, error) {
	// On the heap, because it is given to a function without a body. The stack moves while the host
	// calls cabi_realloc.
	result := new(readResult)
	clusterGet(unsafe.StringData(apiVersion), uint32(len(apiVersion)),
		unsafe.StringData(kind), uint32(len(kind)),
		unsafe.StringData(namespace), uint32(len(namespace)),
		unsafe.StringData(name), uint32(len(name)), result)
	return read(result)
}

func (component) List(apiVersion, kind, namespace, labelSelector string) (string, error) {
	result := new(readResult)
	clusterList(unsafe.StringData(apiVersion), uint32(len(apiVersion)),
		unsafe.StringData(kind), uint32(len(kind)),
		unsafe.StringData(namespace), uint32(len(namespace)),
		unsafe.StringData(labelSelector), uint32(len(labelSelector)), result)
	return read(result)
}

func (component) Now() time.Time { return time.UnixMilli(int64(clockNowMs())) }

func (component) Log(level Level, line string) {
	logWrite(int32(level), unsafe.StringData(line), uint32(len(line)))
}

func read(result *readResult) (string, error) {
	if result.tag&0xff == 0 {
		return text(result.a, result.b), nil
	}
	failure := &ReadError{Case: result.a & 0xff}
	if failure.Case == ErrForbidden.Case || failure.Case == ErrInvalid.Case {
		failure.Text = text(result.b, result.c)
	}
	return "", failure
}

// text is what the host wrote into a block of cabi_realloc.
func text(address, length uint32) string {
	return unsafe.String((*byte)(unsafe.Add(nil, address)), length)
}
