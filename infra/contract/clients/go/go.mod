module example

go 1.23
