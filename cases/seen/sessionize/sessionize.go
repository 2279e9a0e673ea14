// sessionize reads rotated, compressed access logs and writes one line per visitor session
// (gzip CSV), plus a summary on standard output.
package main

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"hash/crc32"
	"io"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

var line = regexp.MustCompile(`^(\S+) \S+ \S+ \[(\d+)/\w+/\d+:(\d\d):(\d\d):(\d\d) [^\]]*\] "(\w+) ([^? "]+)\S* [^"]*" (\d{3}) (\d+) "[^"]*" "([^"]*)"`)

const gap = 1800

type session struct {
	ip, agent          string
	start, last        int
	hits, errors       int
	bytes              int64
	pages              map[string]int
	cart, bot          bool
}

type state struct {
	open    map[string]*session
	done    []*session
	bad     int
	latency []int
}

func (s *state) add(text string) {
	m := line.FindStringSubmatch(text)
	if m == nil {
		s.bad++
		return
	}
	h, _ := strconv.Atoi(m[3])
	mi, _ := strconv.Atoi(m[4])
	se, _ := strconv.Atoi(m[5])
	now := h*3600 + mi*60 + se
	status, _ := strconv.Atoi(m[8])
	n, _ := strconv.ParseInt(m[9], 10, 64)
	key := m[1] + "\x00" + m[10]
	v := s.open[key]
	if v != nil && now-v.last > gap {
		s.done = append(s.done, v)
		v = nil
	}
	if v == nil {
		v = &session{ip: m[1], agent: m[10], start: now, pages: map[string]int{}, bot: strings.Contains(m[10], "bot")}
		s.open[key] = v
	}
	v.last = now
	v.hits++
	v.bytes += n
	if status >= 400 {
		v.errors++
	}
	v.pages[m[7]]++
	v.cart = v.cart || strings.HasPrefix(m[7], "/cart")
}

func (s *state) file(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(bufio.NewReaderSize(f, 256<<10))
	if err != nil {
		return err
	}
	sc := bufio.NewScanner(z)
	for sc.Scan() {
		s.add(sc.Text())
	}
	for _, v := range s.open {
		s.done = append(s.done, v)
	}
	s.open = map[string]*session{}
	return sc.Err()
}

func main() {
	names, _ := filepath.Glob(filepath.Join(os.Args[1], "*.log.gz"))
	s := &state{open: map[string]*session{}}
	for _, n := range names {
		if err := s.file(n); err != nil {
			log.Fatal(n, ": ", err)
		}
	}
	sort.Slice(s.done, func(a, b int) bool {
		x, y := s.done[a], s.done[b]
		if x.ip != y.ip {
			return x.ip < y.ip
		}
		if x.start != y.start {
			return x.start < y.start
		}
		return x.agent < y.agent
	})
	out, err := os.Create(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	w := bufio.NewWriterSize(out, 256<<10)
	z := gzip.NewWriter(w)
	sum := crc32.NewIEEE()
	rows := bufio.NewWriter(io.MultiWriter(z, sum))
	var human, carts, single int
	var bytes int64
	for _, v := range s.done {
		top, most := "", 0
		for p, n := range v.pages {
			if n > most || n == most && p < top {
				top, most = p, n
			}
		}
		fmt.Fprintf(rows, "%s,%d,%d,%d,%d,%d,%s,%q\n", v.ip, v.start, v.last-v.start, v.hits, v.errors, v.bytes, top, v.agent)
		bytes += v.bytes
		if !v.bot {
			human++
			if v.cart {
				carts++
			}
			if v.hits == 1 {
				single++
			}
		}
	}
	for _, c := range []func() error{rows.Flush, z.Close, w.Flush, out.Close} {
		if err := c(); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Printf("%d sessions (%d human, %d with cart, %d bounced), %d bytes served, %d bad lines, %08x\n",
		len(s.done), human, carts, single, bytes, s.bad, sum.Sum32())
}
