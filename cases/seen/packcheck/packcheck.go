// packcheck verifies one snapshot of a backup repository: reads every chunk that
// the snapshot refers to, checks it against the index, and lists damaged files.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"hash/crc32"
	"log"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

type chunk struct {
	pack, off, size int
	crc             uint32
}

type fileEntry struct {
	name   string
	chunks []int
}

type repo struct {
	dir   string
	index map[int]chunk
	packs map[int]*os.File
}

func openRepo(dir string) *repo {
	r := &repo{dir: dir, index: map[int]chunk{}, packs: map[int]*os.File{}}
	f, err := os.Open(filepath.Join(dir, "index"))
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		var id int
		var c chunk
		w := strings.Fields(sc.Text())
		id, _ = strconv.Atoi(w[0])
		c.pack, _ = strconv.Atoi(w[1])
		c.off, _ = strconv.Atoi(w[2])
		c.size, _ = strconv.Atoi(w[3])
		v, _ := strconv.ParseUint(w[4], 16, 32)
		c.crc = uint32(v)
		r.index[id] = c
	}
	return r
}

func (r *repo) pack(n int) *os.File {
	if f, ok := r.packs[n]; ok {
		return f
	}
	f, err := os.Open(filepath.Join(r.dir, "packs", fmt.Sprintf("%02d.pack", n)))
	if err != nil {
		log.Fatal(err)
	}
	r.packs[n] = f
	return f
}

func (r *repo) snapshot() []fileEntry {
	f, err := os.Open(filepath.Join(r.dir, "snapshot"))
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	var out []fileEntry
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		name, list, _ := strings.Cut(sc.Text(), " ")
		e := fileEntry{name: name}
		for _, s := range strings.Split(list, ",") {
			id, _ := strconv.Atoi(s)
			e.chunks = append(e.chunks, id)
		}
		out = append(out, e)
	}
	return out
}

// checkByFile walks the snapshot and loads the chunks of each file in turn.
func (r *repo) checkByFile(files []fileEntry) map[int]bool {
	bad := map[int]bool{}
	buf := make([]byte, 64<<10)
	for _, e := range files {
		for _, id := range e.chunks {
			c := r.index[id]
			b := buf[:c.size]
			if _, err := r.pack(c.pack).ReadAt(b, int64(c.off)); err != nil || crc32.ChecksumIEEE(b) != c.crc {
				bad[id] = true
			}
		}
	}
	return bad
}

// checkByPack loads the same chunks in the order in which they lie in the packs.
func (r *repo) checkByPack(files []fileEntry) map[int]bool {
	bad := map[int]bool{}
	need := map[int]bool{}
	for _, e := range files {
		for _, id := range e.chunks {
			need[id] = true
		}
	}
	ids := make([]int, 0, len(need))
	for id := range need {
		ids = append(ids, id)
	}
	sort.Slice(ids, func(a, b int) bool {
		x, y := r.index[ids[a]], r.index[ids[b]]
		if x.pack != y.pack {
			return x.pack < y.pack
		}
		return x.off < y.off
	})
	buf := make([]byte, 64<<10)
	for _, id := range ids {
		c := r.index[id]
		b := buf[:c.size]
		if _, err := r.pack(c.pack).ReadAt(b, int64(c.off)); err != nil || crc32.ChecksumIEEE(b) != c.crc {
			bad[id] = true
		}
	}
	return bad
}

func main() {
	order := flag.String("order", "file", "file or pack")
	flag.Parse()
	r := openRepo(flag.Arg(0))
	files := r.snapshot()
	var bad map[int]bool
	if *order == "pack" {
		bad = r.checkByPack(files)
	} else {
		bad = r.checkByFile(files)
	}
	var chunks, damaged int
	var bytes int64
	sum := crc32.NewIEEE()
	for _, e := range files {
		ok := true
		for _, id := range e.chunks {
			chunks++
			bytes += int64(r.index[id].size)
			ok = ok && !bad[id]
			fmt.Fprintf(sum, "%s %08x\n", e.name, r.index[id].crc)
		}
		if !ok {
			damaged++
			fmt.Println("damaged:", e.name)
		}
	}
	fmt.Printf("%d files, %d chunks, %d bytes, %d damaged, snapshot %08x\n", len(files), chunks, bytes, damaged, sum.Sum32())
}
