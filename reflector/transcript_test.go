package reflector

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"io"
	"iter"
	"math"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/internal/pace"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata")

// TestTranscripts plays each file of testdata: prose, what the server answers request by request,
// and after a line of dashes all that the reflector then did, on a simulated clock with random
// numbers of one half. The words of a script are in scriptedServer.say.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			script, want, _ := strings.Cut(string(data), "----\n")
			var got string
			synctest.Test(t, func(t *testing.T) { got = play(t, script) })
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(script+"----\n"+got), 0o644))
				return
			}
			require.Equal(t, want, got)
		})
	}
}

// play runs one script. Its lines are comments (#), "option NAME", "run DURATION", "look DURATION"
// for Status at that time, and answers: "list: …", "watchlist: …", "watch: …", "probe: …", each for
// the next request of that kind. A probe without an answer of its own finds a server that is well.
func play(t *testing.T, script string) string {
	server := &scriptedServer{t: t, log: &transcript{began: time.Now()}}
	var options []Option
	length, look, held := time.Minute, time.Duration(math.MaxInt64), ""
	lines := bufio.NewScanner(strings.NewReader(script))
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case verb == "":
		case verb == "run":
			length, _ = time.ParseDuration(rest)
		case verb == "look":
			look, _ = time.ParseDuration(rest)
		case verb == "option" && rest == "final":
			options = append(options, WithFinalErrors())
		case verb == "option" && rest == "pages":
			options = append(options, WithPageSize(2))
		case verb == "option" && rest == "brief":
			options = append(options, WithWatchTimeout(time.Second))
		case verb == "option" && rest == "cached":
			options = append(options, WithCachedFirstList())
		case verb == "option" && rest == "resume":
			options = append(options, WithResume())
		case verb == "option" && strings.HasPrefix(rest, "held "):
			held = strings.TrimPrefix(rest, "held ")
		case verb == "option" && rest == "ahead":
			server.ahead = true
		case verb == "option" && rest == "store-refuses":
			server.refuses = "full"
		case strings.HasSuffix(verb, ":"):
			server.answers = append(server.answers, answer{strings.TrimSuffix(verb, ":"), strings.Fields(rest)})
		default:
			t.Fatalf("cannot read %q", line)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	st := &loggedStore{log: server.log, refuses: server.refuses}
	server.store = st
	if held != "" {
		require.NoError(t, st.Indexer.Add(testPod("a", "1")))
		require.NoError(t, st.Indexer.Bookmark(held))
	}
	r := New[*corev1.Pod](server, st, append(options, WithMetrics(server.log))...)
	r.random = func() float64 { return 0.5 }
	time.AfterFunc(look, func() {
		s := r.Status()
		server.log.line("Status: %s, synced=%t proven=%t class=%q, next request in %s, asked to wait %s",
			s.Phase, s.Synced, !s.ProvenAt.IsZero(), s.Class, max(0, time.Until(s.RetryAt)).Round(time.Millisecond), s.RetryAfter)
	})
	err := r.Run(ctx)
	server.log.line("Run returned %v", err)
	status := r.Status()
	server.log.line("Status: synced=%t version=%q class=%q skipped=%d unplaced=%d stale=%d events=%d err=%v", status.Synced,
		status.ResourceVersion, status.Class, status.Skipped, status.Unplaced, status.Stale, status.Events, status.Err)
	require.Empty(t, server.answers, "answers that were never asked for")
	return server.log.String()
}

// transcript collects lines with the simulated time.
type transcript struct {
	mu sync.Mutex // guards the text: a look at Status comes from a timer
	strings.Builder
	began time.Time
}

func (l *transcript) line(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l, "%9s  %s\n", time.Since(l.began).Round(time.Millisecond), fmt.Sprintf(format, args...))
}

func (l *transcript) ListEnded(s ListStats) {
	l.line("  list ended: %s, %d items, cause %s", s.Class, s.Items, s.Cause)
}
func (l *transcript) WatchEnded(s WatchStats) {
	l.line("  watch ended: %s, %d events", s.Class, s.Events)
}

// loggedStore is an indexer that writes down what it is told.
type loggedStore struct {
	store.Indexer[*corev1.Pod]
	log     *transcript
	refuses string // refuses a pod of this name, once
}

func (s *loggedStore) write(what string, pod *corev1.Pod, do func(*corev1.Pod) error) error {
	if pod.Name == s.refuses {
		s.refuses = ""
		s.log.line("    store refuses to %s %s", what, name(pod))
		return fmt.Errorf("no room")
	}
	s.log.line("    store: %s %s", what, name(pod))
	return do(pod)
}
func (s *loggedStore) Add(p *corev1.Pod) error    { return s.write("add", p, s.Indexer.Add) }
func (s *loggedStore) Update(p *corev1.Pod) error { return s.write("update", p, s.Indexer.Update) }
func (s *loggedStore) Delete(p *corev1.Pod) error { return s.write("delete", p, s.Indexer.Delete) }
func (s *loggedStore) Bookmark(version string) error {
	s.log.line("    store: bookmark %s", version)
	return s.Indexer.Bookmark(version)
}
func (s *loggedStore) Replace(items iter.Seq2[*corev1.Pod, error], version func() string) error {
	err := s.Indexer.Replace(items, version)
	if err != nil {
		s.log.line("    store: replace broken off, keeps %d pods", s.Snapshot().Len())
		return err
	}
	var pods []string
	for _, p := range s.Snapshot().Sorted() {
		pods = append(pods, name(p))
	}
	s.log.line("    store: replace %v at %s", pods, s.Snapshot().ResourceVersion())
	return nil
}

// name is an object in a line: NAME@VERSION, or NAME@VERSION/CONTENT.
func name(p *corev1.Pod) string {
	line := p.Name + "@" + p.ResourceVersion
	if content := p.Labels["content"]; content != "" {
		line += "/" + content
	}
	return line
}

func testPod(name, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version, UID: types.UID("uid-" + name)}}
}

// scriptedServer answers each request with the next answer of its kind.
type scriptedServer struct {
	t       *testing.T
	log     *transcript
	mu      sync.Mutex // guards answers: a probe comes beside the watch
	answers []answer
	refuses string
	store   *loggedStore
	ahead   bool
}

type answer struct {
	kind  string
	words []string
}

// take is the next answer of a kind, or missing.
func (s *scriptedServer) take(kind, missing string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.answers, func(a answer) bool { return a.kind == kind })
	if i < 0 {
		return []string{missing}
	}
	words := s.answers[i].words
	s.answers = slices.Delete(s.answers, i, i+1)
	return words
}

func (s *scriptedServer) List(ctx context.Context, o metav1.ListOptions) listwatch.List[*corev1.Pod] {
	var meta metav1.ListMeta
	return listwatch.List[*corev1.Pod]{Meta: func() metav1.ListMeta { return meta }, Items: func(yield func(*corev1.Pod, error) bool) {
		kind, missing := "list", "silent"
		if o.Limit == 1 || o.Limit == sweepPage {
			kind, missing = "probe", "well"
		}
		s.log.line("%s version=%q match=%q limit=%d continue=%q", strings.ToUpper(kind), o.ResourceVersion, o.ResourceVersionMatch, o.Limit, o.Continue)
		for _, word := range s.take(kind, missing) {
			verb, version, _ := strings.Cut(word, "@")
			switch verb {
			case "at":
				meta.ResourceVersion = version
				continue
			case "continue":
				meta.Continue = version
				continue
			case "well": // with what the copy has, at its version or ahead of it
				held := s.store.Snapshot()
				if meta.ResourceVersion = held.ResourceVersion(); s.ahead {
					meta.ResourceVersion = "1000"
				}
				for _, p := range held.Sorted() {
					if o.Limit > 1 {
						yield(p, nil)
					}
				}
				continue
			}
			event, err, end := s.say(ctx, word)
			if end && err == nil || (event.Object != nil || err != nil) && !yield(event.Object, err) || end {
				return
			}
		}
	}}
}

func (s *scriptedServer) Watch(ctx context.Context, o metav1.ListOptions) iter.Seq2[listwatch.Event[*corev1.Pod], error] {
	return func(yield func(listwatch.Event[*corev1.Pod], error) bool) {
		kind := "watch"
		if o.SendInitialEvents != nil {
			kind = "watchlist"
		}
		s.log.line("%s version=%q match=%q timeout=%ds", strings.ToUpper(kind), o.ResourceVersion, o.ResourceVersionMatch, *o.TimeoutSeconds)
		for _, word := range s.take(kind, "silent") {
			event, err, end := s.say(ctx, word)
			if end && err == nil || (event.Type != "" || err != nil) && !yield(event, err) || end {
				return
			}
		}
	}
}

// say performs one word: NAME@V or +NAME@V added, ~NAME@V modified, -NAME@V deleted, mark@V
// bookmark, end@V the end of the initial events, wait@D time passes, bad@NAME an undecodable
// object, NAME@V/C an object with content C, eof a clean end, 429@S with a Retry-After, and other
// ways to fail.
func (s *scriptedServer) say(ctx context.Context, word string) (event listwatch.Event[*corev1.Pod], err error, end bool) {
	resource := schema.GroupResource{Resource: "pods"}
	verb, arg, _ := strings.Cut(word, "@")
	switch verb {
	case "wait":
		d, _ := time.ParseDuration(arg)
		if !pace.Sleep(ctx, d) {
			return event, ctx.Err(), true
		}
	case "silent":
		<-ctx.Done()
		return event, ctx.Err(), true
	case "eof":
		return event, nil, true
	case "cut":
		return event, io.ErrUnexpectedEOF, true
	case "refused":
		return event, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, true
	case "bad":
		return event, &listwatch.DecodeError{Op: "test", Object: arg, Err: fmt.Errorf("not a pod")}, false
	case "400":
		return event, apierrors.NewBadRequest("sendInitialEvents is unknown"), true
	case "401":
		return event, apierrors.NewUnauthorized("who are you"), true
	case "403":
		return event, apierrors.NewForbidden(resource, "", fmt.Errorf("no")), true
	case "404":
		return event, apierrors.NewNotFound(resource, ""), true
	case "410":
		return event, apierrors.NewResourceExpired("too old"), true
	case "429":
		seconds, _ := strconv.Atoi(arg)
		return event, apierrors.NewTooManyRequests("later", seconds), true
	case "500":
		return event, apierrors.NewInternalError(fmt.Errorf("etcd is away")), true
	case "503":
		err := apierrors.NewServiceUnavailable("starting")
		seconds, _ := strconv.Atoi(arg)
		err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(seconds)}
		return event, err, true
	case "504":
		return event, apierrors.NewGenericServerResponse(504, "list", resource, "", "etcd does not answer", 0, true), true
	case "tls":
		return event, &url.Error{Op: "Get", Err: &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}}, true
	case "opaque":
		return event, fmt.Errorf("strconv.Atoi: invalid syntax"), true
	case "toolarge":
		err := apierrors.NewTimeoutError("Too large resource version", 1)
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
		return event, err, true
	case "mark", "end":
		return listwatch.Event[*corev1.Pod]{Type: watch.Bookmark, ResourceVersion: arg, InitialEventsEnd: verb == "end"}, nil, false
	default:
		kinds := map[byte]watch.EventType{'+': watch.Added, '~': watch.Modified, '-': watch.Deleted}
		kind, known := kinds[verb[0]]
		if !known {
			kind = watch.Added
		}
		version, content, _ := strings.Cut(arg, "/")
		pod := testPod(strings.TrimLeft(verb, "+~-"), version)
		if content != "" {
			pod.Labels = map[string]string{"content": content}
		}
		return listwatch.Event[*corev1.Pod]{Type: kind, Object: pod, ResourceVersion: version}, nil, false
	}
	return event, nil, false
}
