package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
)

type rng uint64

func (r *rng) n(n int) int {
	x := uint64(*r)
	x ^= x << 13
	x ^= x >> 7
	x ^= x << 17
	*r = rng(x)
	return int((x >> 16) % uint64(n))
}

// makeCatalogue writes a gene catalogue and panels, lists of ids that somebody wants to see together.
func makeCatalogue(dir string, genes, panels, wanted int) error {
	if err := os.MkdirAll(filepath.Join(dir, "panels"), 0o755); err != nil {
		return err
	}
	r := rng(0x2545f4914f6cdd1d)
	fa, err := os.Create(filepath.Join(dir, "genes.fa"))
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(fa, 1<<20)
	ids := make([]string, genes)
	for g := range ids {
		ids[g] = fmt.Sprintf("UG%07d.%d", g*3+r.n(3), 1+r.n(4))
		fmt.Fprintf(out, ">%s sample=%d\n", ids[g], r.n(900))
		length := 300 + r.n(2400)
		line := make([]byte, 0, 61)
		for done := 0; done < length; done += 60 {
			line = line[:0]
			for i := done; i < length && i < done+60; i++ {
				line = append(line, "ACGT"[r.n(4)])
			}
			out.Write(append(line, '\n'))
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if err := fa.Sync(); err != nil {
		return err
	}
	for p := 0; p < panels; p++ {
		f, err := os.Create(filepath.Join(dir, "panels", fmt.Sprintf("panel%03d.txt", p)))
		if err != nil {
			return err
		}
		w := bufio.NewWriter(f)
		fmt.Fprintf(w, "# panel %d\n", p)
		for i := 0; i < wanted; i++ {
			fmt.Fprintln(w, ids[r.n(genes)])
		}
		fmt.Fprintln(w, "UG9999999.1")
		if err := w.Flush(); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return fa.Close()
}
