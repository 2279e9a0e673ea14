package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
)

// Status is the file of all installed packages, one stanza each.
type Status struct {
	path    string
	stanzas [][]byte
	journal *os.File
}

// OpenStatus starts from the packages that the base image brings.
func OpenStatus(folder, base string, journal bool) (*Status, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	s := &Status{path: filepath.Join(folder, "status")}
	if base != "" {
		data, err := os.ReadFile(base)
		if err != nil {
			return nil, err
		}
		for _, stanza := range bytes.Split(data, []byte("\n\n")) {
			s.stanzas = append(s.stanzas, append(bytes.TrimRight(stanza, "\n"), '\n'))
		}
	}
	if journal {
		j, err := os.OpenFile(s.path+".journal", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
		if err != nil {
			return nil, err
		}
		s.journal = j
	}
	return s, nil
}

func (s *Status) Len() int { return len(s.stanzas) }

// Installed notes a package, so that the status is right even if the next one fails.
func (s *Status) Installed(p *Package) error {
	s.stanzas = append(s.stanzas, p.Stanza)
	if s.journal != nil {
		_, err := s.journal.Write(append(p.Stanza[:len(p.Stanza):len(p.Stanza)], '\n'))
		return err
	}
	return s.save()
}

func (s *Status) save() error {
	if err := os.WriteFile(s.path+".new", bytes.Join(s.stanzas, []byte("\n")), 0o644); err != nil {
		return err
	}
	return os.Rename(s.path+".new", s.path)
}

// Close leaves a whole status file and tells its size and checksum.
func (s *Status) Close() (int, string, error) {
	if s.journal != nil {
		if err := s.save(); err != nil {
			return 0, "", err
		}
		s.journal.Close()
		os.Remove(s.path + ".journal")
	}
	data, err := os.ReadFile(s.path)
	if err != nil {
		return 0, "", err
	}
	sum := sha256.Sum256(data)
	return len(data), hex.EncodeToString(sum[:6]), nil
}
