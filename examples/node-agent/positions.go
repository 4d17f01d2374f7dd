package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// positions are kept for a restart, by the folder of a container. Without a file nothing is kept.
type positions struct {
	path  string
	saved string // the content of the file
}

// load reads the positions of an earlier run. A file that is no good is told, and lines are told
// again from the beginning.
func (p *positions) load() (map[string]position, error) {
	all := map[string]position{}
	if p.path == "" {
		return all, nil
	}
	data, err := os.ReadFile(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil {
		return map[string]position{}, fmt.Errorf("the positions in %s cannot be used: %w", p.path, err)
	}
	return all, nil
}

// save replaces the file as a whole.
func (p *positions) save(all map[string]position) error {
	data, err := json.Marshal(all)
	if err != nil || p.path == "" || string(data) == p.saved {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(p.path), ".positions-*")
	if err != nil {
		return err
	}
	_, err = temporary.Write(data)
	if err = errors.Join(err, temporary.Close()); err == nil {
		err = os.Rename(temporary.Name(), p.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary.Name()))
	}
	p.saved = string(data)
	return nil
}
