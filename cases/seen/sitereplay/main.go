// sitereplay feeds a request log to the handler of a small static file server, to try a
// new configuration before it goes live: statuses, bytes, headers and entity tags must not change.
//
//	sitereplay [-cache] -root HTDOCS -log REQUESTS
package main

import (
	"bufio"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// rules is what a folder's .access file says for it and everything below it.
type rules struct {
	deny    bool
	expires int
	headers [][2]string
}

type server struct {
	root   string
	cached bool
	known  map[string]*rules
}

// own reads the .access file of one folder; nil if there is none.
func (s *server) own(dir string) (*rules, error) {
	if s.cached {
		if r, ok := s.known[dir]; ok {
			return r, nil
		}
	}
	r, err := parse(filepath.Join(dir, ".access"))
	if err != nil {
		return nil, err
	}
	if s.cached {
		s.known[dir] = r
	}
	return r, nil
}

func parse(name string) (*rules, error) {
	f, err := os.Open(name)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := &rules{expires: -1}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		w := strings.Fields(lines.Text())
		switch {
		case len(w) == 2 && w[0] == "deny":
			r.deny = true
		case len(w) == 2 && w[0] == "expires":
			if r.expires, err = strconv.Atoi(w[1]); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		case len(w) == 3 && w[0] == "header":
			r.headers = append(r.headers, [2]string{w[1], w[2]})
		case len(w) > 0:
			return nil, fmt.Errorf("%s: what is %q?", name, w[0])
		}
	}
	return r, lines.Err()
}

// effective merges the rules of every folder from the root down to dir.
func (s *server) effective(path string) (rules, error) {
	all := rules{expires: -1}
	dir := s.root
	for _, part := range append([]string{""}, strings.Split(strings.Trim(filepath.Dir(path), "/"), "/")...) {
		dir = filepath.Join(dir, part)
		r, err := s.own(dir)
		if err != nil {
			return all, err
		}
		if r == nil {
			continue
		}
		all.deny = all.deny || r.deny
		if r.expires >= 0 {
			all.expires = r.expires
		}
		all.headers = append(all.headers, r.headers...)
	}
	return all, nil
}

func (s *server) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	path := filepath.Clean("/" + q.URL.Path)
	r, err := s.effective(path)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if r.deny {
		http.Error(w, "forbidden", http.StatusForbidden)
		return
	}
	body, err := os.ReadFile(filepath.Join(s.root, path))
	if err != nil {
		http.NotFound(w, q)
		return
	}
	for _, h := range r.headers {
		w.Header().Add(h[0], h[1])
	}
	if r.expires >= 0 {
		w.Header().Set("Cache-Control", "max-age="+strconv.Itoa(r.expires))
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Etag", fmt.Sprintf("\"%08x-%d\"", crc32.ChecksumIEEE(body), len(body)))
	w.Write(body)
}

func main() {
	cache := flag.Bool("cache", false, "remember the .access files")
	root := flag.String("root", "htdocs", "document root")
	log := flag.String("log", "requests.log", "requests to replay")
	flag.Parse()
	f, err := os.Open(*log)
	if err != nil {
		fmt.Fprintln(os.Stderr, "sitereplay:", err)
		os.Exit(1)
	}
	defer f.Close()
	s := &server{root: *root, cached: *cache, known: map[string]*rules{}}
	status, clients := map[int]int{}, map[string]int64{}
	var bytes int64
	sum := crc32.NewIEEE()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		w := strings.Fields(lines.Text())
		if len(w) != 3 {
			continue
		}
		rec := httptest.NewRecorder()
		s.ServeHTTP(rec, &http.Request{Method: w[1], URL: &url.URL{Path: w[2]}})
		status[rec.Code]++
		bytes += int64(rec.Body.Len())
		clients[w[0][:6]] += int64(rec.Body.Len())
		io.WriteString(sum, rec.Header().Get("Etag")+rec.Header().Get("Cache-Control")+rec.Header().Get("X-Frame-Options"))
	}
	for _, code := range []int{200, 403, 404, 500} {
		fmt.Printf("%d: %d\n", code, status[code])
	}
	var nets []string
	for n := range clients {
		nets = append(nets, n)
	}
	sort.Strings(nets)
	for _, n := range nets {
		fmt.Printf("%s %d bytes\n", n, clients[n])
	}
	fmt.Printf("body bytes %d, headers %08x\n", bytes, sum.Sum32())
}
