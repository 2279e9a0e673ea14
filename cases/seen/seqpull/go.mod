module seqpull

go 1.21
