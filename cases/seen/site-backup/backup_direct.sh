#!/bin/sh
# Nightly backup of the web site's files.
set -e
cd "$1"
tar -b 1024 -cf site.tar site
echo "$(tar -tf site.tar | wc -l) members, $(head -c 140000000 site.tar | cksum)"
