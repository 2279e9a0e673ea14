package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Uploader appends the files of a tree, compressed, to a volume file of the bucket.
type Uploader struct {
	Root, Bucket string
	State        *State
	Files        int
	Bytes        int64

	volume *os.File
	at     int64
	packed bytes.Buffer
	gz     *gzip.Writer
}

func (u *Uploader) Run() error {
	if err := os.MkdirAll(u.Bucket, 0o755); err != nil {
		return err
	}
	var err error
	u.volume, err = os.OpenFile(filepath.Join(u.Bucket, "volume-0000"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer u.volume.Close()
	if u.at, err = u.volume.Seek(0, io.SeekEnd); err != nil {
		return err
	}
	u.gz, err = gzip.NewWriterLevel(&u.packed, gzip.DefaultCompression)
	if err != nil {
		return err
	}
	return filepath.WalkDir(u.Root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(u.Root, path)
		if err != nil || u.State.Has(rel) {
			return err
		}
		e, err := u.upload(path, rel, d)
		if err != nil {
			return err
		}
		u.Files++
		u.Bytes += e.Size
		return u.State.Done(e)
	})
}

func (u *Uploader) upload(path, rel string, d fs.DirEntry) (*Entry, error) {
	info, err := d.Info()
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	u.packed.Reset()
	u.gz.Reset(&u.packed)
	if _, err := u.gz.Write(data); err != nil {
		return nil, err
	}
	if err := u.gz.Close(); err != nil {
		return nil, err
	}
	if _, err := u.volume.Write(u.packed.Bytes()); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	e := &Entry{Path: rel, Size: info.Size(), Mode: info.Mode(), Digest: hex.EncodeToString(sum[:]), At: u.at, Packed: u.packed.Len()}
	u.at += int64(e.Packed)
	return e, nil
}

func digestFile(name string) (string, int64, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), n, err
}
