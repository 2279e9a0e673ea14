module syncstate

go 1.20
