package main

import "innkeeper.dev/sdk-go/guest"

func init() { guest.Export(Guest{}) }

// The host calls the guest, not main.
func main() {}
