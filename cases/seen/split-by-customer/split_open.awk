# Splits the usage records by customer, one file each, keeping their order.
BEGIN { FS = "," }
{
    file = dir "/customers/" $2 ".csv"
    print $1 "," $3 "," $4 >> file
}
