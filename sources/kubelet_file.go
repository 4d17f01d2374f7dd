package sources

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/sources/internal/access"
	"github.com/tributary-go/tributary/sources/manifest"
	"github.com/tributary-go/tributary/sources/static"
	"github.com/tributary-go/tributary/store"
)

// kubeletFile reads manifests as the kubelet does. Its apparent mistakes are the kubelet's,
// kept on purpose: see LikeKubelet. It has three truths that need not agree: the pods by name, the
// names by file, and the state that was set. Events change single pods, the interval replaces all
// pods, and an empty folder is set without touching the other two.
type kubeletFile struct {
	path     string
	settings access.Settings
	keeper   access.Keeper
	sink     *Sink
	log      logr.Logger
	decoder  manifest.Decoder

	pods map[string]*corev1.Pod
	// of a file: the key of the pod that it declared when it was last good
	names    map[string]string
	problems map[string]error // by path
	warnings map[string]error // by path, of the file's last good reading
}

const (
	kubeletRetry    = time.Second
	kubeletMaxRetry = 20 * time.Second
	// kubeletEvents is how many events wait while a file is read. Further ones wait in the system.
	kubeletEvents = 10
	// pipeLook is how often a FIFO that the source hangs on is looked at.
	pipeLook = 50 * time.Millisecond
)

func newKubeletFile(path string, options []static.Option, sink *Sink) *kubeletFile {
	k := &kubeletFile{
		path: path, settings: settingsOf(options), sink: sink,
		pods: map[string]*corev1.Pod{}, names: map[string]string{}, problems: map[string]error{}, warnings: map[string]error{},
	}
	k.decoder = manifest.Decoder{
		Node: sink.Node(), Source: FileSource, LikeKubelet: true, Release: sink.release,
		Warn: func(err *manifest.Error) { k.warnings[err.Path] = unknownField(err) },
	}
	return k
}

func (k *kubeletFile) report() Report { return k.keeper.Read() }

func (k *kubeletFile) run(ctx context.Context, _ *Sink) error {
	if err := k.settings.Validate(); err != nil {
		return err
	}
	path, err := access.Path(k.path)
	if err != nil {
		return err
	}
	k.path, k.log = path, k.sink.Log().WithValues("path", path)
	k.keeper.StaleAfter(k.settings.Stale())
	period, stop := k.settings.Period()
	defer stop()
	events, missing := make(chan fsnotify.Event, kubeletEvents), make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() { k.watch(ctx, events, missing) })
	defer watching.Wait()
	k.list()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-period:
			k.list()
		case <-missing:
			k.problems[k.path] = access.Missing(k.path)
			k.hand(Pods{})
		case event := <-events:
			k.event(ctx, event)
		}
	}
}

// watch watches the path, and looks for it each second while it is not there. After the path has
// gone away, the watch goes on without any further event.
func (k *kubeletFile) watch(ctx context.Context, events chan<- fsnotify.Event, missing chan<- struct{}) {
	delay := kubeletRetry
	k.keeper.Mode(fmt.Sprintf("poll every %s", k.settings.Every))
	for {
		err := k.follow(ctx, events)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, fs.ErrNotExist):
			delay = kubeletRetry
			k.keeper.Mode(access.Polls(k.settings.Every, err))
			select {
			case missing <- struct{}{}:
			case <-ctx.Done():
				return
			}
		default:
			k.log.V(2).Info("The watch has ended", "error", err.Error())
			k.keeper.Mode(access.Polls(k.settings.Every, err))
		}
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		delay = min(2*delay, kubeletMaxRetry)
	}
}

// follow forwards the events of the path until the watch itself fails.
func (k *kubeletFile) follow(ctx context.Context, events chan<- fsnotify.Event) error {
	if _, err := os.Stat(k.path); err != nil {
		return err
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close()
	if err := watcher.Add(k.path); err != nil {
		return err
	}
	k.keeper.Mode(access.FileEvents())
	for {
		select {
		case event := <-watcher.Events:
			select {
			case events <- event:
			case <-ctx.Done():
				return nil
			}
		case err := <-watcher.Errors:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// event reads the file of an event, or drops the pod that the file declared.
func (k *kubeletFile) event(ctx context.Context, event fsnotify.Event) {
	if strings.HasPrefix(filepath.Base(event.Name), ".") {
		return
	}
	if event.Op&(fsnotify.Create|fsnotify.Write|fsnotify.Chmod) == 0 {
		delete(k.problems, event.Name)
		delete(k.warnings, event.Name)
		name, known := k.names[event.Name]
		if _, ok := k.pods[name]; known && ok {
			delete(k.pods, name)
			delete(k.names, event.Name)
			k.set()
			return
		}
		k.note()
		return
	}
	pod, err := k.read(ctx, event.Name)
	if err != nil {
		k.problems[event.Name] = err
		k.note()
		return
	}
	delete(k.problems, event.Name)
	k.pods[store.KeyOf(pod)] = pod
	k.set()
}

// list looks at everything, at each interval.
func (k *kubeletFile) list() {
	clear(k.problems)
	clear(k.warnings)
	info, err := os.Stat(k.path)
	missing := errors.Is(err, fs.ErrNotExist)
	var pods []*corev1.Pod
	if err == nil {
		pods, err = k.readAll(info)
	}
	if err != nil {
		k.problems[k.path] = err
	}
	if missing {
		k.problems[k.path] = access.Missing(k.path)
	}
	switch {
	case missing, err == nil && len(pods) == 0:
		k.hand(Pods{}) // but known files stay known
	case err != nil:
		k.note()
	default:
		k.replace(pods)
	}
}

func (k *kubeletFile) readAll(info fs.FileInfo) ([]*corev1.Pod, error) {
	switch {
	case info.IsDir():
		return k.readFolder()
	case info.Mode().IsRegular():
		pod, err := k.read(context.Background(), k.path)
		return []*corev1.Pod{pod}, err
	}
	return nil, access.Mark("refused", fmt.Errorf("%s is neither a folder nor a file", k.path))
}

func (k *kubeletFile) readFolder() (pods []*corev1.Pod, err error) {
	// A folder with a glob character in its path is a pattern for other folders, and one that
	// cannot be read is empty.
	paths, err := filepath.Glob(filepath.Join(k.path, "[^.]*"))
	if err != nil {
		return nil, fmt.Errorf("%s: the kubelet reads the path as a pattern: %w", k.path, err)
	}
	if folder, err := os.Open(k.path); err != nil {
		k.problems[k.path] = err
	} else {
		folder.Close()
	}
	slices.Sort(paths)
	for _, path := range paths {
		info, err := os.Stat(path)
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%s is not a regular file", path)
		}
		var pod *corev1.Pod
		if err == nil {
			pod, err = k.read(context.Background(), path)
		}
		if err != nil {
			k.problems[path] = err
			continue
		}
		pods = append(pods, pod)
	}
	return pods, nil
}

// read returns the pod of a file. On a FIFO it hangs until another process writes.
func (k *kubeletFile) read(ctx context.Context, path string) (*corev1.Pod, error) {
	var data []byte
	info, err := os.Stat(path)
	if err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
		data, err = readPipe(ctx, path)
	} else if err == nil {
		data, err = access.ReadFile(path)
	}
	if err != nil {
		return nil, err
	}
	delete(k.warnings, path)
	pods, rejected := k.decoder.Decode(path, data)
	if len(rejected) > 0 {
		return nil, rejected[0]
	}
	k.names[path] = store.KeyOf(pods[0])
	return pods[0], nil
}

// replace makes pods the known ones. Of two pods with one name the last one counts.
func (k *kubeletFile) replace(pods []*corev1.Pod) {
	clear(k.pods)
	for _, pod := range pods {
		k.pods[store.KeyOf(pod)] = pod
	}
	k.set()
}

func (k *kubeletFile) set() {
	var all store.Indexer[*corev1.Pod]
	for _, pod := range k.pods {
		_ = all.Add(pod) // it cannot fail: a manifest's pods have names
	}
	k.hand(all.Snapshot())
}

func (k *kubeletFile) hand(now Pods) {
	k.keeper.Hand(k.log, k.round(), func() { k.sink.Set(now) })
}

func (k *kubeletFile) note() { k.keeper.Note(k.log, k.round()) }

func (k *kubeletFile) round() access.Round {
	byText := func(a, b error) int { return strings.Compare(a.Error(), b.Error()) }
	return access.Round{
		Problems: slices.SortedFunc(maps.Values(k.problems), byText),
		Warnings: slices.SortedFunc(maps.Values(k.warnings), byText),
		Contact:  true,
	}
}

// readPipe waits until another process writes into a FIFO, or ctx ends, and reads to the end. It
// opens the FIFO without waiting for the other side, so that it can be ended.
func readPipe(ctx context.Context, path string) ([]byte, error) {
	pipe, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer pipe.Close()
	var data []byte
	buffer := make([]byte, 64<<10)
	look := time.NewTicker(pipeLook)
	defer look.Stop()
	for len(data) < manifest.MaxSize {
		_ = pipe.SetReadDeadline(time.Now().Add(pipeLook))
		n, err := pipe.Read(buffer)
		data = append(data, buffer[:n]...)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err == nil || errors.Is(err, os.ErrDeadlineExceeded):
			continue
		case !errors.Is(err, io.EOF):
			return nil, err
		case len(data) > 0:
			return data, nil
		}
		select { // no other process has it open
		case <-look.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return nil, manifest.ErrTooLarge
}
