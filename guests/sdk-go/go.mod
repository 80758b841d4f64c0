module innkeeper.dev/sdk-go

go 1.24
