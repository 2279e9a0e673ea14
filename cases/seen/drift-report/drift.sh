#!/bin/sh
# Lists the files of server/ that differ from release/. The second argument
# says how rsync compares.
set -e
cd "$1"
rsync --archive --dry-run --itemize-changes "$2" release/ server/ | cut -d ' ' -f 2
