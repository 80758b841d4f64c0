module innkeeper.dev/examples/cron-go

go 1.24

require innkeeper.dev/sdk-go v0.0.0

replace innkeeper.dev/sdk-go => ../../sdk-go
