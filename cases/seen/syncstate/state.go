package main

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"sort"
	"strings"
)

// Entry is what is known of one uploaded file.
type Entry struct {
	Path   string
	Size   int64
	Mode   fs.FileMode
	Digest string
	At     int64 // in the volume
	Packed int
}

func (e *Entry) line() string {
	return fmt.Sprintf("%s\t%d\t%04o\tvolume-0000:%d+%d\t%s\n", e.Digest, e.Size, e.Mode.Perm(), e.At, e.Packed, e.Path)
}

// State is the table of uploaded files, one line each, sorted by path.
type State struct {
	file    string
	lines   map[string]string
	sorted  []string
	journal *os.File
}

func OpenState(file string, journal bool) (*State, error) {
	s := &State{file: file, lines: map[string]string{}}
	for _, f := range []string{file, file + ".journal"} {
		if err := s.load(f); err != nil {
			return nil, err
		}
	}
	if journal {
		var err error
		s.journal, err = os.OpenFile(file+".journal", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *State) load(file string) error {
	f, err := os.Open(file)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		if p := strings.SplitN(sc.Text(), "\t", 5); len(p) == 5 {
			s.insert(p[4], sc.Text()+"\n")
		}
	}
	return sc.Err()
}

func (s *State) insert(path, line string) {
	if _, ok := s.lines[path]; !ok {
		i := sort.SearchStrings(s.sorted, path)
		s.sorted = append(s.sorted, "")
		copy(s.sorted[i+1:], s.sorted[i:])
		s.sorted[i] = path
	}
	s.lines[path] = line
}

func (s *State) Len() int { return len(s.sorted) }

func (s *State) Has(path string) bool { _, ok := s.lines[path]; return ok }

// Done records an uploaded file; after a crash it is not uploaded again.
func (s *State) Done(e *Entry) error {
	line := e.line()
	s.insert(e.Path, line)
	if s.journal != nil {
		_, err := s.journal.WriteString(line)
		return err
	}
	return s.save()
}

// save replaces the state file as a whole, so that a reader never sees half of one.
func (s *State) save() error {
	f, err := os.OpenFile(s.file+".tmp", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 64<<10)
	for _, p := range s.sorted {
		if _, err := w.WriteString(s.lines[p]); err != nil {
			f.Close()
			return err
		}
	}
	if err := w.Flush(); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(s.file+".tmp", s.file)
}

func (s *State) Close() error {
	if s.journal == nil {
		return nil
	}
	if err := s.save(); err != nil {
		return err
	}
	if err := s.journal.Close(); err != nil {
		return err
	}
	return os.Remove(s.file + ".journal")
}
