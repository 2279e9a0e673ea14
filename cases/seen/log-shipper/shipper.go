// A service that logs in bursts and the shipper that forwards its log.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

type event struct {
	Seq     int    `json:"seq"`
	Level   string `json:"level"`
	Service string `json:"service"`
	Msg     string `json:"msg"`
	Ms      int    `json:"ms"`
}

type shipper struct {
	log       string
	byOffset  bool
	sentLines int
	offset    int64
	out       *bufio.Writer
	sum       uint32
	slowest   int
}

func (s *shipper) poll() {
	f, err := os.Open(s.log)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	skip := s.sentLines
	if s.byOffset {
		f.Seek(s.offset, io.SeekStart)
		skip = 0
	}
	r := bufio.NewReader(f)
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return
		}
		if skip > 0 {
			skip--
			continue
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			panic(err)
		}
		if e.Ms > s.slowest {
			s.slowest = e.Ms
		}
		if e.Level != "debug" {
			s.out.Write(line)
			s.sum = crc32.Update(s.sum, crc32.IEEETable, line)
		}
		s.sentLines++
		s.offset += int64(len(line))
	}
}

func main() {
	dir := os.Args[1]
	app, err := os.Create(dir + "/app.log")
	if err != nil {
		panic(err)
	}
	out, err := os.Create(dir + "/shipped.log")
	if err != nil {
		panic(err)
	}
	s := &shipper{log: dir + "/app.log", byOffset: len(os.Args) > 2, out: bufio.NewWriterSize(out, 64<<10)}
	seq := 0
	for burst := 0; burst < 400; burst++ {
		w := bufio.NewWriterSize(app, 256<<10)
		for i := 0; i < 315; i++ {
			lv := "info"
			if seq%5 == 0 {
				lv = "debug"
			}
			fmt.Fprintf(w, "{\"seq\":%d,\"level\":\"%s\",\"service\":\"checkout-%d\",\"msg\":\"order %d was priced and reserved in warehouse %d, waiting for payment\",\"ms\":%d}\n", seq, lv, seq%7, seq*37, seq%11, seq*seq%4999)
			seq++
		}
		w.Flush()
		s.poll()
	}
	s.out.Flush()
	fmt.Println(s.sentLines, s.slowest, s.sum)
}
