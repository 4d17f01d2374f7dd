package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	yamlv2 "go.yaml.in/yaml/v2"
)

// FuzzDocuments holds the documents of the splitter, which looks at lines alone, against those of
// the YAML parser, which reads the whole stream: the same values in the same order, as far as the
// parser gets.
func FuzzDocuments(f *testing.F) {
	inputs, err := filepath.Glob("testdata/manifests/*")
	require.NoError(f, err)
	for _, input := range inputs {
		data, err := os.ReadFile(input)
		require.NoError(f, err)
		if len(data) < 1<<10 {
			f.Add(data)
		}
	}
	for _, text := range []string{
		"---\n{a: b}\n", "--- {a: b}\n--- {c: d}\n...\n", "---\n{\"a\": 1}\n# b\n", "a: b\n---\n{c: d}\n", "{a: b}\n---\n[c]\n",
		"%YAML 1.1\n---\na\n...\n%TAG ! x:\n---\nb\n", "\uFEFF---\na\n---\n\n---\r\rb\u0085---\u2028c", "a: |\n  ---\n---\n'x\n\n y'\n",
		"---\n---\n", "...\n", "a\n...\n# b\n", "--- |\n a\n--- >\n b\n", "--- # a\n--- #\n",
		// An end marker that nothing stands before was once refused.
		"---\n...", "---\n# a\n...\nb\n", "%YAML 1.1\n---\n...\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		want, whole := valuesOfStream(data)
		got := []string{}
		for _, d := range splitDocuments(toUTF8(data)) { // the parser knows UTF-16 itself
			require.Equal(t, len(got)+1, d.number)
			var value any
			if yamlv2.Unmarshal(d.data, &value) != nil {
				break
			}
			got = append(got, fmt.Sprintf("%#v", value))
		}
		if !whole {
			got = got[:min(len(got), len(want))]
		}
		require.Equal(t, want, got)
	})
}

// valuesOfStream are the values that the parser gives, until there are no more or it fails.
func valuesOfStream(data []byte) (values []string, whole bool) {
	values = []string{}
	parser := yamlv2.NewDecoder(bytes.NewReader(data))
	for {
		var value any
		if err := parser.Decode(&value); err != nil {
			return values, errors.Is(err, io.EOF)
		}
		values = append(values, fmt.Sprintf("%#v", value))
	}
}
