module charges

go 1.22
