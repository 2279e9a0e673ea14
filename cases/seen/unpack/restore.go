// restore unpacks a backup archive into a folder and makes sure that all of it
// is on the disk when it says so.
package main

import (
	"archive/tar"
	"bufio"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
)

type restorer struct {
	dest  string
	files int
	bytes int64
	sum   uint32
	made  map[string]bool
}

func (r *restorer) folder(path string) error {
	if r.made[path] {
		return nil
	}
	r.made[path] = true
	return os.MkdirAll(path, 0o755)
}

func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// file writes one member beside its place, and moves it there when it is whole.
func (r *restorer) file(h *tar.Header, in io.Reader) error {
	path := filepath.Join(r.dest, filepath.Clean("/"+h.Name))
	if err := r.folder(filepath.Dir(path)); err != nil {
		return err
	}
	tmp := path + ".part"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, os.FileMode(h.Mode).Perm())
	if err != nil {
		return err
	}
	crc := crc32.NewIEEE()
	n, err := io.Copy(f, io.TeeReader(in, crc))
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	if err := os.Chtimes(tmp, h.ModTime, h.ModTime); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	r.files++
	r.bytes += n
	r.sum += crc.Sum32()
	return syncFolder(filepath.Dir(path))
}

func (r *restorer) run(archive string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	tr := tar.NewReader(bufio.NewReaderSize(f, 1<<18))
	for {
		h, err := tr.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag == tar.TypeReg {
			if err := r.file(h, tr); err != nil {
				return fmt.Errorf("%s: %w", h.Name, err)
			}
		}
	}
}

func main() {
	r := &restorer{dest: os.Args[2], made: map[string]bool{}}
	if err := r.run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "restore:", err)
		os.Exit(1)
	}
	fmt.Printf("restored %d files, %d bytes, sum %08x\n", r.files, r.bytes, r.sum)
}
