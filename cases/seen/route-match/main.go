// route-match finds for every recorded ride the reference route that it
// followed, by the discrete Frechet distance, and writes one report.
//
//	route-match ROUTES TRACKS REPORT
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	earth     = 6371000.0 // metres
	tolerance = 120.0     // metres; further away is no match
	saveEvery = 400       // rides between two saved states of the report
)

type point struct{ lat, lon float64 }

type track struct {
	name   string
	points []point
}

func load(path string) (track, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return track{}, err
	}
	t := track{name: strings.TrimSuffix(filepath.Base(path), ".csv")}
	for i, line := range bytes.Split(bytes.TrimSpace(data), []byte{'\n'}) {
		a, b, ok := strings.Cut(string(line), ",")
		if i == 0 || !ok {
			continue
		}
		lat, err1 := strconv.ParseFloat(a, 64)
		lon, err2 := strconv.ParseFloat(b, 64)
		if err1 != nil || err2 != nil {
			return t, fmt.Errorf("%s:%d: not a position", path, i+1)
		}
		t.points = append(t.points, point{lat * math.Pi / 180, lon * math.Pi / 180})
	}
	return t, nil
}

func metres(a, b point) float64 {
	s := math.Sin((a.lat - b.lat) / 2)
	u := math.Sin((a.lon - b.lon) / 2)
	return 2 * earth * math.Asin(math.Sqrt(s*s+math.Cos(a.lat)*math.Cos(b.lat)*u*u))
}

func frechet(p, q []point) float64 {
	if len(p) == 0 || len(q) == 0 {
		return math.Inf(1)
	}
	prev, cur := make([]float64, len(q)), make([]float64, len(q))
	for i := range p {
		for j := range q {
			reach := math.Inf(1)
			switch {
			case i == 0 && j == 0:
				reach = 0
			case i == 0:
				reach = cur[j-1]
			case j == 0:
				reach = prev[0]
			default:
				reach = math.Min(prev[j-1], math.Min(prev[j], cur[j-1]))
			}
			cur[j] = math.Max(reach, metres(p[i], q[j]))
		}
		prev, cur = cur, prev
	}
	return prev[len(q)-1]
}

func run(routeDir, trackDir, reportPath string) error {
	names, err := filepath.Glob(filepath.Join(routeDir, "*.csv"))
	if err != nil {
		return err
	}
	var routes []track
	for _, n := range names {
		r, err := load(n)
		if err != nil {
			return err
		}
		routes = append(routes, r)
	}
	file, err := os.Create(reportPath)
	if err != nil {
		return err
	}
	defer file.Close()
	report := bufio.NewWriterSize(file, 64<<10)
	rides, matched, sum := 0, 0, 0.0
	err = filepath.WalkDir(trackDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".csv" {
			return err
		}
		t, err := load(path)
		if err != nil {
			return err
		}
		best, at := "-", tolerance
		for _, r := range routes {
			if dist := frechet(t.points, r.points); dist < at {
				best, at = r.name, dist
			}
		}
		if rides++; best != "-" {
			matched++
			sum += at
		}
		fmt.Fprintf(report, "%s\t%s\t%.1f\n", t.name, best, at)
		if rides%saveEvery == 0 {
			report.Flush()
			return file.Sync()
		}
		return nil
	})
	if err == nil {
		err = report.Flush()
	}
	fmt.Printf("%d rides, %d matched, mean distance %.2f m\n", rides, matched, sum/math.Max(1, float64(matched)))
	return err
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: route-match ROUTES TRACKS REPORT")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "route-match:", err)
		os.Exit(1)
	}
}
