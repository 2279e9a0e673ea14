// syncstate uploads a tree to a (local) bucket and remembers what it has uploaded, so that an interrupted
// run goes on where it stopped.
//
//	syncstate [-journal] -state FILE -bucket DIR TREE
package main

import (
	"flag"
	"fmt"
	"log"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("syncstate: ")
	state := flag.String("state", "", "state file")
	bucket := flag.String("bucket", "", "target folder")
	journal := flag.Bool("journal", false, "record progress in a journal beside the state file")
	flag.Parse()

	db, err := OpenState(*state, *journal)
	if err != nil {
		log.Fatal(err)
	}
	up := &Uploader{Root: flag.Arg(0), Bucket: *bucket, State: db}
	if err := up.Run(); err != nil {
		log.Fatal(err)
	}
	if err := db.Close(); err != nil {
		log.Fatal(err)
	}
	sum, n, err := digestFile(*state)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("uploaded %d files, %d bytes; state %d entries, %d bytes, %s\n", up.Files, up.Bytes, db.Len(), n, sum[:16])
}
