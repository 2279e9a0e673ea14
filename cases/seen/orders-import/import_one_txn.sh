#!/bin/sh
# Loads the web shop's order export into the reporting database.
set -e
dir=$1
db=$dir/orders.db

sqlite3 "$db" 'CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, sku TEXT, quantity INT, cents INT);
               CREATE INDEX orders_customer ON orders (customer);'

awk -F, 'BEGIN { print "BEGIN;" }
NR > 1 {
    printf "INSERT INTO orders VALUES (%d, '\''%s'\'', '\''%s'\'', %d, %d);\n", $1, $2, $3, $4, $5
}
END { print "COMMIT;" }' "$dir/orders.csv" | sqlite3 "$db"

sqlite3 "$db" 'SELECT count(*), sum(quantity * cents), count(DISTINCT customer) FROM orders;'
