// Seqpull takes the genes of panels out of a catalogue, translates them and reports the longest open frame of each.
package main

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

func report(path string, panels []*panel) error {
	o, err := os.Create(path)
	if err != nil {
		return err
	}
	defer o.Close()
	w, sum := bufio.NewWriterSize(o, 1<<16), sha256.New()
	found, missing := 0, 0
	for _, p := range panels {
		for _, id := range p.ids {
			r := p.genes[id]
			if r == nil {
				missing++
				continue
			}
			found++
			line := fmt.Sprintf("%s\t%s\t%d\t%d\t%d\t%.4f\t%08x\n", p.name, id, r.frame, r.start, r.length, r.gc, r.sum)
			w.WriteString(line)
			sum.Write([]byte(line))
		}
	}
	fmt.Printf("%d panels %d genes %d missing %x\n", len(panels), found, missing, sum.Sum(nil)[:10])
	return w.Flush()
}

func pull(dir, out, way string) error {
	panels, err := readPanels(filepath.Join(dir, "panels"))
	if err != nil {
		return err
	}
	c := NewCatalogue(filepath.Join(dir, "genes.fa"))
	fill := fillEach
	if way == "all" {
		fill = fillAll
	}
	if err := fill(c, panels); err != nil {
		return err
	}
	return report(out, panels)
}

func main() {
	var err error
	switch a := os.Args[1:]; {
	case len(a) == 5 && a[0] == "make":
		var n [3]int
		for i := range n {
			n[i], _ = strconv.Atoi(a[i+2])
		}
		err = makeCatalogue(a[1], n[0], n[1], n[2])
	case len(a) == 3:
		err = pull(a[0], a[1], a[2])
	default:
		err = fmt.Errorf("usage: seqpull DIR OUT each|all")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "seqpull:", err)
		os.Exit(1)
	}
}
