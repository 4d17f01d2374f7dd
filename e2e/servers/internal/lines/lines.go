// Package lines is how the tests speak to the commands of this module.
package lines

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
)

// Answer reads a value in JSON from each line, and writes the answer as a line. It ends with the
// input, or with the first error.
func Answer[Q, A any](in io.Reader, out io.Writer, answer func(Q) (A, error)) error {
	lines, answers := bufio.NewReader(in), json.NewEncoder(out)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var q Q
		if err := json.Unmarshal(line, &q); err != nil {
			return err
		}
		a, err := answer(q)
		if err != nil {
			return err
		}
		if err := answers.Encode(a); err != nil {
			return err
		}
	}
}
