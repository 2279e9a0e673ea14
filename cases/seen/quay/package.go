package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Package is one *.qpk: a stanza of text, an empty line, and the files' bytes.
type Package struct {
	Name   string
	Stanza []byte
	body   []byte
	files  []entry
}

type entry struct {
	path string
	size int
	sum  string
}

func LoadPackage(path string) (*Package, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	end := bytes.Index(data, []byte("\n\n"))
	if end < 0 {
		return nil, fmt.Errorf("%s: no header", path)
	}
	p := &Package{Stanza: data[:end+1], body: data[end+2:]}
	section := ""
	for _, line := range strings.Split(string(data[:end]), "\n") {
		if strings.HasPrefix(line, " ") {
			if section == "Files" {
				w := strings.Fields(line)
				size, err := strconv.Atoi(w[1])
				if err != nil {
					return nil, err
				}
				p.files = append(p.files, entry{w[0], size, w[2]})
			}
			continue
		}
		key, value, _ := strings.Cut(line, ":")
		section = key
		if key == "Package" {
			p.Name = strings.TrimSpace(value)
		}
	}
	return p, nil
}

func (p *Package) Unpack(root string) (files, size int, err error) {
	at := 0
	for _, e := range p.files {
		data := p.body[at : at+e.size]
		at += e.size
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != e.sum {
			return 0, 0, fmt.Errorf("%s: %s is damaged", p.Name, e.path)
		}
		to := filepath.Join(root, e.path)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return 0, 0, err
		}
		if err := os.WriteFile(to, data, 0o644); err != nil {
			return 0, 0, err
		}
		size += e.size
	}
	return len(p.files), size, nil
}
