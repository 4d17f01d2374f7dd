// Command podsource asks the kubelet's own pod sources what they make of manifests. Each line of
// its input is a [question], the line of output that follows its [answer].
package main

import (
	"fmt"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/capabilities"

	"github.com/tributary-go/tributary/e2e/servers/internal/lines"
)

// question is a manifest as a file or at a URL, the states of sources one after the other, a story
// of files, or a folder as it is now.
type question struct {
	Source   string   `json:"source"` // file or http
	Manifest []byte   `json:"manifest"`
	States   []state  `json:"states"`
	Folder   *folder  `json:"folder"`
	Present  *present `json:"present"`
}

// answer is what the source emitted, or why it emitted nothing; of states, the updates that came of
// them.
type answer struct {
	Rejected string        `json:"rejected,omitempty"`
	Fields   []string      `json:"fields,omitempty"` // that validation rejected
	Pods     []*corev1.Pod `json:"pods,omitempty"`
	Updates  []update      `json:"updates,omitempty"`
}

const node = "node-1"

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "podsource:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	// As the kubelet does when it starts.
	capabilities.Initialize(capabilities.Capabilities{AllowPrivileged: true})
	folder, err := os.MkdirTemp("", "podsource")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	file := &fileSource{folder: folder}
	url, looks := newURLSource(), folders{}
	return lines.Answer(in, out, func(q question) (a answer, err error) {
		switch {
		case len(q.States) > 0:
			a.Updates = merge(q.States)
		case q.Folder != nil:
			a.Updates, err = q.Folder.play()
		case q.Present != nil:
			a = looks.ask(*q.Present)
		case q.Source == "http":
			a = url.ask(q.Manifest)
		default:
			a, err = file.ask(q.Manifest)
		}
		if err != nil {
			return a, err
		}
		a.Fields = invalidFields(q.Source, q.Manifest, a.Rejected)
		return a, nil
	})
}
