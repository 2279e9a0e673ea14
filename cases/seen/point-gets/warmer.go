// Fetches records from random places with many readers.
package main

import (
	"fmt"
	"hash/crc32"
	"math/rand"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

const record = 4096
const readers = 24

func main() {
	f, err := os.Open(os.Args[1])
	if err != nil {
		panic(err)
	}
	st, _ := f.Stat()
	syscall.Syscall6(syscall.SYS_FADVISE64, f.Fd(), 0, 0, 1, 0, 0) // POSIX_FADV_RANDOM
	order := rand.New(rand.NewSource(3)).Perm(int(st.Size() / record))[:60000]
	var next int64 = -1
	var sum uint64
	var wg sync.WaitGroup
	for w := 0; w < readers; w++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			buf := make([]byte, record)
			for {
				i := atomic.AddInt64(&next, 1)
				if i >= int64(len(order)) {
					return
				}
				if _, err := f.ReadAt(buf, int64(order[i])*record); err != nil {
					panic(err)
				}
				atomic.AddUint64(&sum, uint64(crc32.ChecksumIEEE(buf)))
			}
		}()
	}
	wg.Wait()
	fmt.Println(len(order), sum)
}
