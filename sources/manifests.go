package sources

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/tributary-go/tributary/sources/internal/access"
	"github.com/tributary-go/tributary/sources/manifest"
	"github.com/tributary-go/tributary/sources/static"
)

// File adds the pods declared by a manifest, or by every manifest of a folder, as [static.File]
// reads them; a manifest is what the package manifest takes for one. Options are of the package
// static. Run and Add refuse an empty path.
//
// The UID of a pod without a metadata.uid depends on path, and not on the file in the folder: if a
// manifest is renamed, or the same content takes over from another file, the pod goes on running.
func File(path string, options ...static.Option) Input {
	if path == "" {
		return Input{err: access.ErrNoPath}
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

// HTTP adds the pods declared behind a URL, as [static.HTTP] reads them: a Pod, a PodList or a stream of YAML documents, in
// JSON, YAML or protobuf. A PodList without items is how to say that there are none. Options are of the package static.
func HTTP(address string, options ...static.Option) Input {
	if address == "" {
		return Input{err: access.ErrNoURL}
	}
	return Custom(&manifests{name: HTTPSource, start: func(sink *Sink) running {
		settings := withLog(options, sink)
		if sink.likeKubelet {
			return newKubeletHTTP(address, settings, sink)
		}
		return podsOfReader(static.HTTP(address, staticPods(sink, HTTPSource, ""), settings...))
	}})
}

// From adds pods that are read and decoded in a way of the caller's own. They are taken as they are: nothing is defaulted
// or validated. The source is called "file" or "http", by its kind; see [Input.Named]. [LikeKubelet] does not apply to it.
// A reader that is nil is an error of Run, or of Add.
func From(pods *static.Reader[*corev1.Pod]) Input {
	if pods == nil {
		return Input{err: errors.New("From: the reader is nil")}
	}
	return Custom(&manifests{name: pods.Kind(), start: func(*Sink) running { return podsOfReader(pods) }})
}

// FromKubelet adds what a kubelet says at its /pods: all pods of its node as they are, with their names, UIDs, annotations
// and status. Nothing is added, defaulted or validated. A kubelet asks for a bearer token ([static.WithTokenFile]) and has a
// certificate of the cluster's CA ([static.WithCA]). The source is called "http". [LikeKubelet] does not apply to it.
func FromKubelet(address string, options ...static.Option) Input {
	if address == "" {
		return Input{err: access.ErrNoURL}
	}
	return Custom(&manifests{name: HTTPSource, start: func(sink *Sink) running {
		return podsOfReader(static.HTTP(address, decodePodList, withLog(options, sink)...))
	}})
}

// manifests is a source that is made when it is run, for the sink says how.
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

// withLog gives the source's log to what the options are for.
func withLog(options []static.Option, sink *Sink) []static.Option {
	return append(options[:len(options):len(options)], static.WithLogger(sink.Log()))
}

// settingsOf is what the options say.
func settingsOf(options []static.Option) access.Settings {
	settings := access.Default()
	for _, option := range options {
		option(&settings)
	}
	return settings
}

// staticPods reads manifests of static pods. UIDs are made with from, or else with the path of each
// manifest.
func staticPods(sink *Sink, source, from string) static.Decode[*corev1.Pod] {
	decoder := manifest.Decoder{Node: sink.Node(), Source: source, UIDPath: from}
	return func(path string, data []byte) (pods []*corev1.Pod, rejected []error) {
		pods, all := decoder.Decode(path, data)
		for _, err := range all {
			rejected = append(rejected, err)
		}
		return pods, rejected
	}
}

// decodePodList reads a PodList as an API server, or a kubelet, answers it.
func decodePodList(path string, data []byte) (pods []*corev1.Pod, rejected []error) {
	var list corev1.PodList
	if err := json.Unmarshal(data, &list); err != nil || list.Kind != "PodList" {
		return nil, []error{fmt.Errorf("%s: the answer is not a PodList in JSON: is this a kubelet's /pods?", path)}
	}
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	return pods, nil
}
