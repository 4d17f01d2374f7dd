package sources

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/sources/internal/access"
	"github.com/tributary-go/tributary/sources/manifest"
	"github.com/tributary-go/tributary/sources/static"
)

// Names of the sources of [File], [HTTP] and [Kubelet].
const (
	FileSource    = manifest.SourceFile
	HTTPSource    = manifest.SourceHTTP
	KubeletSource = "kubelet"
)

// File reads the pods of one manifest, or of every manifest of a folder, as [static.File] does. The
// package manifest defines a manifest. The options are those of the package static. Run and Add
// refuse an empty path and bad options.
//
// The UID of a pod without a metadata.uid depends on path, and not on the file in the folder. So
// the pod goes on running if its manifest is renamed, or if another file with the same content
// takes over.
func File(path string, options ...static.Option) Input {
	if path == "" {
		return Input{name: FileSource, err: access.ErrNoPath}
	}
	if err := settingsOf(options).Validate(); err != nil {
		return Input{name: FileSource, err: fmt.Errorf("File: %w", err)}
	}
	return Custom(&manifests{name: FileSource, start: func(sink *Sink) running {
		settings := withLog(options, sink)
		if sink.likeKubelet {
			return newKubeletFile(path, settings, sink)
		}
		at, _ := access.Path(path) // the reader's error is the same
		return podsOfReader(static.File(path, staticPods(sink, FileSource, at), settings...))
	}})
}

// HTTP reads the pods behind a URL, as [static.HTTP] does: a Pod, a PodList or a stream of YAML
// documents, in JSON, YAML or protobuf. A PodList without items declares that there are none. The
// options are those of the package static.
func HTTP(address string, options ...static.Option) Input {
	if address == "" {
		return Input{name: HTTPSource, err: access.ErrNoURL}
	}
	if err := settingsOf(options).Validate(); err != nil {
		return Input{name: HTTPSource, err: fmt.Errorf("HTTP: %w", err)}
	}
	return Custom(&manifests{name: HTTPSource, start: func(sink *Sink) running {
		settings := withLog(options, sink)
		if sink.likeKubelet {
			return newKubeletHTTP(address, settings, sink)
		}
		return podsOfReader(static.HTTP(address, staticPods(sink, HTTPSource, ""), settings...))
	}})
}

// From takes pods from a reader with a Decode function of your own. The pods are taken as they are:
// nothing is defaulted or validated. The source is called "file" or "http" by the kind of the
// reader; see [Input.Named]. [LikeKubelet] does not apply to it. A nil reader is an error of Run,
// or of Add.
func From(pods *static.Reader[*corev1.Pod]) Input {
	if pods == nil {
		return Input{name: FileSource, err: errors.New("From: the reader is nil")}
	}
	return Custom(&manifests{name: pods.Kind(), start: func(*Sink) running { return podsOfReader(pods) }})
}

// manifests is a source that is made when it is run, because the sink has its settings.
type manifests struct {
	name  string
	start func(sink *Sink) running
	now   atomic.Pointer[running]
}

// running is a source without a name.
type running interface {
	run(ctx context.Context, sink *Sink) error
	report() Report
}

func (m *manifests) Name() string { return m.name }

func (m *manifests) Run(ctx context.Context, sink *Sink) error {
	one := m.start(sink)
	m.now.Store(&one)
	return one.run(ctx, sink)
}

func (m *manifests) Report() Report {
	if one := m.now.Load(); one != nil {
		return (*one).report()
	}
	return Report{}
}

// fromReader runs a reader of pods.
type fromReader struct{ *static.Reader[*corev1.Pod] }

func podsOfReader(pods *static.Reader[*corev1.Pod]) running { return fromReader{pods} }

func (r fromReader) report() Report { return r.Report() }

func (r fromReader) run(ctx context.Context, sink *Sink) error {
	return r.Run(ctx, func(now static.State[*corev1.Pod]) {
		if r.Ordered() {
			sink.setInOrder(now.Objects, now.Declared)
		} else {
			sink.Set(now.Objects)
		}
	})
}

// withLog adds the source's log to the options.
func withLog(options []static.Option, sink *Sink) []static.Option {
	return append(options[:len(options):len(options)], static.WithLogger(sink.Log()))
}

// settingsOf applies the options to the default settings.
func settingsOf(options []static.Option) access.Settings {
	settings := access.Default()
	for _, option := range options {
		option(&settings)
	}
	return settings
}

// staticPods decodes manifests of static pods. from stands for the path in UIDs; empty: the path of
// each manifest.
func staticPods(sink *Sink, source, from string) static.Decode[*corev1.Pod] {
	return func(path string, data []byte) (pods []*corev1.Pod, rejected []error) {
		decoder := manifest.Decoder{Node: sink.Node(), Source: source, Release: sink.release, UIDPath: from}
		decoder.Warn = func(err *manifest.Error) { rejected = append(rejected, static.Warning(unknownField(err))) }
		pods, all := decoder.Decode(path, data)
		for _, err := range all {
			rejected = append(rejected, err)
		}
		return pods, rejected
	}
}

// unknownField is the warning of a pod with fields that are dropped.
func unknownField(err *manifest.Error) error { return access.Mark("unknown_field", err) }
