// Simulates a fleet of vans on a grid of streets.
package main

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"log"
	"os"
	"path/filepath"
)

const (
	vans  = 4096
	steps = 36000
	every = 6000 // steps between saved states
)

type van struct{ X, Y, Load, Seed uint32 }

func (v *van) step() {
	v.Seed ^= v.Seed << 13
	v.Seed ^= v.Seed >> 17
	v.Seed ^= v.Seed << 5
	switch v.Seed % 5 {
	case 0:
		v.X++
	case 1:
		v.X--
	case 2:
		v.Y++
	case 3:
		v.Y--
	default:
		v.Load = (v.Load + v.Seed>>28) % 1000
	}
}

func save(dir string, fleet []van) error {
	path := filepath.Join(dir, "state.bin")
	file, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	if err := binary.Write(file, binary.LittleEndian, fleet); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func main() {
	dir := os.Args[1]
	fleet := make([]van, vans)
	for i := range fleet {
		fleet[i].Seed = uint32(i)*2654435761 + 1
	}
	for s := 1; s <= steps; s++ {
		for i := range fleet {
			fleet[i].step()
		}
		if s%every == 0 {
			if err := save(dir, fleet); err != nil {
				log.Fatal(err)
			}
		}
	}
	state, err := os.ReadFile(filepath.Join(dir, "state.bin"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d vans, %d steps, crc %08x\n", vans, steps, crc32.ChecksumIEEE(state))
}
