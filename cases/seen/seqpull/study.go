package main

import "hash/crc32"

const codons = "KNKNTTTTRSRSIIMIQHQHPPPPRRRRLLLLEDEDAAAAGGGGVVVV*Y*YSSSS*CWCLFLF"

type result struct {
	frame, start, length int
	gc                   float64
	sum                  uint32 // of the proteins, with the name of the panel
}

var code [256]byte

func init() {
	for i := range code {
		code[i] = 255
	}
	for i, c := range "ACGT" {
		code[c] = byte(i)
	}
}

type study struct{ seq, rev, protein []byte }

func newStudy() *study {
	return &study{make([]byte, 0, 1<<16), make([]byte, 0, 1<<16), make([]byte, 0, 1<<15)}
}

// gene translates in six frames and looks for the longest open one.
func (s *study) gene(raw []byte, salt string) result {
	seq, rev := s.seq[:0], s.rev[:0]
	gc := 0
	for _, b := range raw {
		if c := code[b]; c != 255 {
			seq = append(seq, c)
			if c == 1 || c == 2 {
				gc++
			}
		}
	}
	for i := len(seq) - 1; i >= 0; i-- {
		rev = append(rev, 3-seq[i])
	}
	best := result{gc: float64(gc) / float64(len(seq)), sum: crc32.ChecksumIEEE([]byte(salt))}
	for frame := 0; frame < 6; frame++ {
		strand := seq
		if frame >= 3 {
			strand = rev
		}
		protein := s.protein[:0]
		open, start := 0, 0
		for i := frame % 3; i+2 < len(strand); i += 3 {
			a := codons[int(strand[i])<<4|int(strand[i+1])<<2|int(strand[i+2])]
			protein = append(protein, a)
			if a == '*' {
				open = 0
				continue
			}
			if open == 0 {
				start = i
			}
			if open++; open > best.length {
				best.frame, best.start, best.length = frame, start, open
			}
		}
		best.sum = crc32.Update(best.sum, crc32.IEEETable, protein)
	}
	return best
}
