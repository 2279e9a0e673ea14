// segcompact merges the sorted segments of every shard into one segment a shard.
// Of a key that lies in several segments the newest version stays.
package main

import (
	"bufio"
	"bytes"
	"container/heap"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"log"
	"os"
	"path/filepath"
	"sort"
	"sync"
	"syscall"
)

// Segment is an immutable sorted run, mapped into memory.
type Segment struct {
	data []byte
	age  int // higher is newer
}

// OpenSegment maps a segment. Lookups jump about in it, so the kernel is told
// not to read pages around the one that is asked for.
func OpenSegment(path string, age int) (*Segment, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, int(st.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	if err := syscall.Madvise(data, syscall.MADV_RANDOM); err != nil {
		return nil, err
	}
	return &Segment{data: data, age: age}, nil
}

func (s *Segment) Close() error { return syscall.Munmap(s.data) }

// Cursor walks a segment from its first record to its last.
type Cursor struct {
	seg        *Segment
	pos        int
	key, value []byte
}

func (s *Segment) Cursor() (*Cursor, error) {
	if err := syscall.Madvise(s.data, syscall.MADV_SEQUENTIAL); err != nil {
		return nil, err
	}
	return &Cursor{seg: s}, nil
}

func (c *Cursor) Next() bool {
	d := c.seg.data
	if c.pos+6 > len(d) {
		return false
	}
	klen := int(binary.LittleEndian.Uint16(d[c.pos:]))
	vlen := int(binary.LittleEndian.Uint32(d[c.pos+2:]))
	at := c.pos + 6
	c.key, c.value = d[at:at+klen], d[at+klen:at+klen+vlen]
	c.pos = at + klen + vlen
	return true
}

type mergeHeap []*Cursor

func (h mergeHeap) Len() int { return len(h) }
func (h mergeHeap) Less(i, j int) bool {
	if c := bytes.Compare(h[i].key, h[j].key); c != 0 {
		return c < 0
	}
	return h[i].seg.age > h[j].seg.age
}
func (h mergeHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *mergeHeap) Push(x any)   { *h = append(*h, x.(*Cursor)) }
func (h *mergeHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

type stats struct {
	kept, dropped int
	crc           uint32
}

func compact(shard, out string) (st stats, err error) {
	paths, err := filepath.Glob(filepath.Join(shard, "*.seg"))
	if err != nil {
		return st, err
	}
	sort.Strings(paths)
	h := &mergeHeap{}
	for age, path := range paths {
		seg, err := OpenSegment(path, age)
		if err != nil {
			return st, err
		}
		defer seg.Close()
		cur, err := seg.Cursor()
		if err != nil {
			return st, err
		}
		if cur.Next() {
			heap.Push(h, cur)
		}
	}

	f, err := os.Create(out)
	if err != nil {
		return st, err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	var last []byte
	var head [6]byte
	for h.Len() > 0 {
		cur := (*h)[0]
		if last != nil && bytes.Equal(cur.key, last) {
			st.dropped++
		} else {
			binary.LittleEndian.PutUint16(head[0:], uint16(len(cur.key)))
			binary.LittleEndian.PutUint32(head[2:], uint32(len(cur.value)))
			w.Write(head[:])
			w.Write(cur.key)
			if _, err := w.Write(cur.value); err != nil {
				return st, err
			}
			st.crc = crc32.Update(st.crc, crc32.IEEETable, cur.value)
			st.kept++
			last = append(last[:0], cur.key...)
		}
		if cur.Next() {
			heap.Fix(h, 0)
		} else {
			heap.Pop(h)
		}
	}
	if err := w.Flush(); err != nil {
		return st, err
	}
	return st, f.Sync()
}

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: segcompact DIR OUT")
	}
	shards, err := filepath.Glob(filepath.Join(os.Args[1], "shard-*"))
	if err != nil {
		log.Fatal(err)
	}
	sort.Strings(shards)
	if err := os.MkdirAll(os.Args[2], 0o755); err != nil {
		log.Fatal(err)
	}
	results := make([]stats, len(shards))
	var wg sync.WaitGroup
	for i, shard := range shards {
		wg.Add(1)
		go func() {
			defer wg.Done()
			st, err := compact(shard, filepath.Join(os.Args[2], filepath.Base(shard)+".seg"))
			if err != nil {
				log.Fatal(err)
			}
			results[i] = st
		}()
	}
	wg.Wait()
	for i, st := range results {
		fmt.Printf("%s kept %d dropped %d crc %08x\n", filepath.Base(shards[i]), st.kept, st.dropped, st.crc)
	}
}
