package main

import (
	"bufio"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

type panel struct {
	name  string
	ids   []string
	genes map[string]*result // nil: not in the catalogue
}

func readPanels(dir string) ([]*panel, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	sort.Strings(paths)
	var all []*panel
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		p := &panel{name: strings.TrimSuffix(filepath.Base(path), ".txt"), genes: map[string]*result{}}
		in := bufio.NewScanner(strings.NewReader(string(text)))
		for in.Scan() {
			if id := strings.TrimSpace(in.Text()); id != "" && id[0] != '#' {
				p.ids = append(p.ids, id)
				p.genes[id] = nil
			}
		}
		all = append(all, p)
	}
	return all, nil
}

// fillEach fills one panel after the other.
func fillEach(c *Catalogue, panels []*panel) error {
	s := newStudy()
	for _, p := range panels {
		err := c.Each(func(id []byte) bool { _, ok := p.genes[string(id)]; return ok }, func(id, raw []byte) {
			r := s.gene(raw, p.name)
			p.genes[string(id)] = &r
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// fillAll fills all panels while going through the catalogue.
func fillAll(c *Catalogue, panels []*panel) error {
	s := newStudy()
	users := map[string][]*panel{}
	for _, p := range panels {
		for id := range p.genes {
			users[id] = append(users[id], p)
		}
	}
	return c.Each(func(id []byte) bool { _, ok := users[string(id)]; return ok }, func(id, raw []byte) {
		for _, p := range users[string(id)] {
			r := s.gene(raw, p.name)
			p.genes[string(id)] = &r
		}
	})
}
