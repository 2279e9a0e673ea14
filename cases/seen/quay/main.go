// quay installs packages below a root folder and keeps a status file of what is there.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	repo := flag.String("repo", "repo", "folder of the packages")
	root := flag.String("root", "root", "where to install")
	base := flag.String("base", "", "status file of the base image")
	journal := flag.Bool("journal", false, "note each package in a journal")
	flag.Parse()
	if err := run(*repo, *root, *base, flag.Arg(0), *journal); err != nil {
		fmt.Fprintln(os.Stderr, "quay:", err)
		os.Exit(1)
	}
}

func run(repo, root, base, list string, journal bool) error {
	f, err := os.Open(list)
	if err != nil {
		return err
	}
	defer f.Close()
	db, err := OpenStatus(filepath.Join(root, "var/lib/quay"), base, journal)
	if err != nil {
		return err
	}
	files, bytes := 0, 0
	in := bufio.NewScanner(f)
	for in.Scan() {
		p, err := LoadPackage(filepath.Join(repo, in.Text()+".qpk"))
		if err != nil {
			return err
		}
		n, b, err := p.Unpack(root)
		if err != nil {
			return err
		}
		files += n
		bytes += b
		if err := db.Installed(p); err != nil {
			return err
		}
	}
	if err := in.Err(); err != nil {
		return err
	}
	size, sum, err := db.Close()
	if err != nil {
		return err
	}
	fmt.Printf("%d packages, %d files, %d bytes; status %d bytes %s\n", db.Len(), files, bytes, size, sum)
	return nil
}
