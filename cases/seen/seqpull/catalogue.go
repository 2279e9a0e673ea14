package main

import (
	"bytes"
	"io"
	"os"
)

// A Catalogue is a FASTA file: ">id words" and lines of bases.
type Catalogue struct {
	path string
	buf  []byte
}

func NewCatalogue(path string) *Catalogue {
	return &Catalogue{path: path, buf: make([]byte, 1<<20)}
}

// Each calls fn with every record whose id keep wants; raw holds line ends and lives until fn returns.
func (c *Catalogue) Each(keep func(id []byte) bool, fn func(id, raw []byte)) error {
	f, err := os.Open(c.path)
	if err != nil {
		return err
	}
	defer f.Close()
	held, last := 0, false
	for !last {
		n, err := f.Read(c.buf[held:])
		if err != nil && err != io.EOF {
			return err
		}
		held += n
		last = n == 0
		rest := c.buf[:held]
		for len(rest) > 0 {
			// a record is whole when the next one begins
			end := bytes.IndexByte(rest[1:], '>') + 1
			if end == 0 {
				if !last {
					break
				}
				end = len(rest)
			}
			record := rest[:end]
			rest = rest[end:]
			nl := bytes.IndexByte(record, '\n')
			if record[0] != '>' || nl < 0 {
				continue
			}
			id, _, _ := bytes.Cut(record[1:nl], []byte{' '})
			if keep(id) {
				fn(id, record[nl+1:])
			}
		}
		held = copy(c.buf, rest)
		if held == len(c.buf) {
			c.buf = append(c.buf, make([]byte, len(c.buf))...)
		}
	}
	return nil
}
