//go:build !wasip1

package guest

// here is for components only: tests call [Call] with a host of their own.
var here Host
