package reflector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/internal/pace"
	"github.com/tributary-go/tributary/listwatch"
)

// The faults of requests, of lists under way, and of watches under way.
var (
	requestFaults = []string{"400", "401", "403", "404", "410", "429", "429 later", "500", "503", "unreachable", "timeout", "slow", "mute", "restored", "restored, written to", "another history", "429 for 31 years"}
	listFaults    = []string{"cut", "reset", "undecodable item", "mute"}
	watchFaults   = []string{"end", "EOF", "cut", "reset", "410 inside", "500 inside", "undecodable event", "wrong type",
		"unknown event type", "duplicate", "replay", "bookmark", "mute", "slow", "restart",
		"future version", "near future", "other backend", "no version"}
	probeFaults = []string{"probe fails: 403", "probe fails: 500", "probe fails: mute", "probe fails: cut"}
	allFaults   = slices.Concat(probeFaults, requestFaults, listFaults, watchFaults, []string{"stale server", "cut off from etcd", "watch list fails", "watch refused", "store refuses", "continue expired", "watch list ends early", "other content", "version 0"})
)

var pods = schema.GroupResource{Resource: "pods"}

// fail performs a fault that ends a request, or delays it; nil lets it go on.
func (m *model) fail(ctx context.Context, fault string) error {
	switch fault {
	case "400":
		return apierrors.NewBadRequest("sim")
	case "401":
		return apierrors.NewUnauthorized("sim")
	case "403":
		return apierrors.NewForbidden(pods, "", errors.New("sim"))
	case "404":
		return apierrors.NewNotFound(pods, "")
	case "410", "410 inside":
		return apierrors.NewResourceExpired("sim")
	case "429":
		return &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonTooManyRequests, Code: 429}}
	case "429 later":
		return apierrors.NewTooManyRequests("sim", 1+m.random.IntN(10))
	case "429 for 31 years":
		return apierrors.NewTooManyRequests("sim", 1e9)
	case "500", "500 inside":
		return apierrors.NewInternalError(errors.New("sim"))
	case "503":
		return apierrors.NewServiceUnavailable("sim")
	case "unreachable":
		return &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	case "timeout":
		return context.DeadlineExceeded
	case "EOF":
		return io.EOF
	case "cut":
		return io.ErrUnexpectedEOF
	case "reset":
		return &net.OpError{Op: "read", Err: syscall.ECONNRESET}
	case "restart": // the server's window begins anew
		m.floor = m.last().version
		return io.ErrUnexpectedEOF
	case "another history":
		m.become()
		return io.ErrUnexpectedEOF
	case "restored", "restored, written to":
		m.restore(fault == "restored")
		return io.ErrUnexpectedEOF
	case "slow":
		m.sleep(ctx, time.Duration(m.random.IntN(20))*time.Second)
	case "mute":
		m.sleep(ctx, 24*time.Hour)
	}
	return ctx.Err()
}

// sleep lets others use the model meanwhile.
func (m *model) sleep(ctx context.Context, d time.Duration) {
	m.mu.Unlock()
	defer m.mu.Lock()
	pace.Sleep(ctx, d)
}

// outside calls yield without the lock.
func outside[V any](m *model, yield func(V, error) bool) func(V, error) bool {
	return func(v V, err error) bool {
		m.mu.Unlock()
		defer m.mu.Lock()
		return yield(v, err)
	}
}

// defaulted gives the objects of events the content that the server has for them now.
func (m *model) defaulted(yield events) events {
	return func(e listwatch.Event[*corev1.Pod], err error) bool {
		if e.Object != nil {
			e.Object.Labels = map[string]string{"default": strconv.Itoa(m.defaults)}
		}
		return yield(e, err)
	}
}

// Lookup answers with the newest state's object of a name, or fails.
func (m *model) Lookup(ctx context.Context, _, name string) (listwatch.List[*corev1.Pod], bool) {
	var meta metav1.ListMeta
	return listwatch.List[*corev1.Pod]{Meta: func() metav1.ListMeta { return meta }, Items: func(yield func(*corev1.Pod, error) bool) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.probe(ctx, &meta, outside(m, yield), metav1.ListOptions{Limit: 1}, func(have string) bool { return have == name })
	}}, true
}

// become makes the server another cluster. Its versions cover those of the copy, and its watch goes
// on from there: nothing tells a client but the objects.
func (m *model) become() {
	m.epoch++
	m.wentBack, m.lossy, m.torn = true, true, true
	m.frozen, m.little = m.random.IntN(2) == 0, false
	other := moment{version: max(m.last().version, m.judge.version), objects: map[string]string{}}
	if m.judge.version > 0 {
		other.version = m.judge.version
	}
	for range 1 + m.random.IntN(6) {
		version := 1 + m.random.IntN(other.version)
		other.objects[fmt.Sprintf("pod-%d", m.random.IntN(6))] = fmt.Sprintf("other%d.%d@%d", m.epoch, version, version)
	}
	// A cluster that was restored, and was written to until it passed the copy, has kept some.
	before := m.at(other.version).objects
	if names := slices.Sorted(maps.Keys(before)); len(names) > 0 && m.random.IntN(2) == 0 {
		maps.DeleteFunc(other.objects, func(name, _ string) bool { return name <= names[0] })
		other.objects[names[0]] = before[names[0]]
	}
	m.history, m.behind = []moment{other}, 0
	m.floor = min(m.floor, other.version)
}

// probe answers with the newest state's first object, with some of them, or fails. The world stands
// still meanwhile, because the watch under way has the steps.
func (m *model) probe(ctx context.Context, meta *metav1.ListMeta, yield func(*corev1.Pod, error) bool, o metav1.ListOptions, wanted func(name string) bool) {
	if m.done.Load() {
		m.probes++
	}
	if fault := m.fault(4, probeFaults...); fault != "" {
		if err := m.fail(ctx, strings.TrimPrefix(fault, "probe fails: ")); err != nil {
			yield(nil, err)
		}
		return
	}
	if m.cutOff {
		yield(nil, apierrors.NewGenericServerResponse(504, "list", pods, "", "sim", 0, true))
		return
	}
	o.ResourceVersion = ""
	state, from, err := m.listState(o)
	if err != nil {
		yield(nil, err)
		return
	}
	meta.ResourceVersion = strconv.Itoa(state.version)
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(state.objects))[from:], func(name string) bool { return !wanted(name) })
	if page := int(min(o.Limit, 2)); len(names) > page && o.Limit != sweepWhole { // small here
		names, meta.Continue = names[:page], fmt.Sprintf("%d/%d", state.version, from+page)
	}
	for _, name := range names {
		p := podOf(name, state.objects[name])
		p.Labels = map[string]string{"default": strconv.Itoa(m.defaults)}
		if !yield(p, nil) {
			return
		}
	}
}

func tooLargeVersion() error {
	err := apierrors.NewTimeoutError("Too large resource version", 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
	return err
}

func garbled(kind, object string) error {
	return &listwatch.DecodeError{Op: kind, Object: object, Err: errors.New("sim")}
}

// request counts one, and draws its fault.
func (m *model) request(ctx context.Context) error {
	m.step()
	if m.done.Load() {
		m.requests++
	}
	return m.fail(ctx, m.fault(3*m.rarity, requestFaults...))
}

func (m *model) List(ctx context.Context, o metav1.ListOptions) listwatch.List[*corev1.Pod] {
	var meta metav1.ListMeta
	return listwatch.List[*corev1.Pod]{Meta: func() metav1.ListMeta { return meta }, Items: func(yield func(*corev1.Pod, error) bool) {
		m.mu.Lock()
		defer m.mu.Unlock()
		yield = outside(m, yield)
		if o.Limit == 1 || o.Limit == sweepPage || o.Limit == sweepWhole {
			m.probe(ctx, &meta, yield, o, func(string) bool { return true })
			return
		}
		err := m.request(ctx)
		var state moment
		from := 0
		if err == nil && m.judge.version > 0 && m.fault(2*m.rarity, "version 0") != "" {
			meta.ResourceVersion = []string{"", "0"}[m.random.IntN(2)]
			return // empty, as from a cache that has just started
		}
		if err == nil {
			state, from, err = m.listState(o)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		meta.ResourceVersion = strconv.Itoa(state.version)
		if o.Continue == "" {
			m.listed = map[string]string{}
		}
		names := slices.Sorted(maps.Keys(state.objects))[from:]
		if o.Limit > 0 && len(names) > 2 { // pages are small here, whatever was asked for
			names = names[:2]
			meta.Continue = fmt.Sprintf("%d/%d", state.version, from+2)
		}
		for _, name := range names {
			m.step()
			if !m.item(ctx, name, state.objects[name], yield) {
				return
			}
		}
	}}
}

// item yields one object of a list, or a fault in its place.
func (m *model) item(ctx context.Context, name, object string, yield func(*corev1.Pod, error) bool) bool {
	switch fault := m.fault(40*m.rarity, listFaults...); fault {
	case "":
		return yield(m.listing(podOf(name, object)), nil)
	case "undecodable item":
		m.torn = true
		return yield(nil, garbled("list", name))
	default:
		err := m.fail(ctx, fault)
		return err == nil || yield(nil, err) && false
	}
}

// listing gives an object of a list the content that the server has for it now, which changes
// without a new version.
func (m *model) listing(p *corev1.Pod) *corev1.Pod {
	p.Labels = map[string]string{"default": strconv.Itoa(m.defaults)}
	m.listed[p.Name] = p.Labels["default"]
	return p
}

// listState is the state that a LIST reads, and the position in it.
func (m *model) listState(o metav1.ListOptions) (state moment, from int, err error) {
	if o.Continue != "" {
		version, position, _ := strings.Cut(o.Continue, "/")
		v, _ := strconv.Atoi(version)
		from, _ = strconv.Atoi(position)
		if v < m.floor || m.fault(8*m.rarity, "continue expired") != "" {
			return state, 0, apierrors.NewResourceExpired("the continue token is too old")
		}
		state = m.at(v)
		return state, min(from, len(state.objects)), nil // the token may be of another history
	}
	if o.ResourceVersion == "" && m.cutOff {
		return state, 0, apierrors.NewGenericServerResponse(504, "list", pods, "", "sim", 0, true)
	}
	state, m.asked = m.shown(), m.last().version
	if v, _ := strconv.Atoi(o.ResourceVersion); v > state.version {
		return state, 0, tooLargeVersion()
	}
	if o.ResourceVersion == "" {
		state = m.last() // a consistent read
	}
	return state, 0, nil
}

type events = func(listwatch.Event[*corev1.Pod], error) bool

func bookmark(version int, end bool) listwatch.Event[*corev1.Pod] {
	return listwatch.Event[*corev1.Pod]{Type: watch.Bookmark, ResourceVersion: strconv.Itoa(version), InitialEventsEnd: end}
}

func (m *model) Watch(ctx context.Context, o metav1.ListOptions) iter.Seq2[listwatch.Event[*corev1.Pod], error] {
	return func(yield events) {
		m.mu.Lock()
		defer m.mu.Unlock()
		yield = outside(m, m.defaulted(yield))
		if err := m.request(ctx); err != nil {
			yield(listwatch.Event[*corev1.Pod]{}, err)
			return
		}
		from, _ := strconv.Atoi(o.ResourceVersion)
		if o.SendInitialEvents == nil && m.noWatch && !m.done.Load() {
			m.total.faults["watch refused"]++
			yield(listwatch.Event[*corev1.Pod]{}, apierrors.NewForbidden(pods, "", errors.New("sim")))
			return
		}
		if o.SendInitialEvents == nil {
			m.changes(ctx, from, *o.TimeoutSeconds, yield)
			return
		}
		if m.watchList == fails && m.enabled["watch list fails"] {
			m.total.faults["watch list fails"]++
			yield(listwatch.Event[*corev1.Pod]{}, m.anyFailure())
			return
		}
		if m.watchList == refused {
			yield(listwatch.Event[*corev1.Pod]{}, apierrors.NewBadRequest("sendInitialEvents is forbidden"))
			return
		}
		if from == 0 && m.cutOff {
			m.sleep(ctx, 24*time.Hour)
			return
		}
		if state, ok := m.initial(from, yield); ok {
			m.changes(ctx, state.version, *o.TimeoutSeconds, yield)
		}
	}
}

// initial sends the state of a watch list; false ends the watch.
func (m *model) initial(atLeast int, yield events) (moment, bool) {
	state := m.shown()
	m.asked = m.last().version
	if atLeast == 0 {
		state = m.last()
	}
	if atLeast > state.version {
		return state, yield(listwatch.Event[*corev1.Pod]{}, tooLargeVersion()) && false
	}
	m.listed = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(state.objects)) {
		m.step()
		if m.fault(40*m.rarity, "watch list ends early") != "" {
			return state, false
		}
		var sent bool
		if m.fault(60*m.rarity, "undecodable item") != "" {
			m.torn = true
			sent = yield(listwatch.Event[*corev1.Pod]{}, garbled("watch", name))
		} else {
			added := event('+', name, state.objects[name])
			m.listing(added.Object)
			sent = yield(added, nil)
		}
		if !sent {
			return state, false
		}
	}
	switch m.watchList {
	case ignored: // changes follow as if nothing had been asked
		return state, true
	case neverEnds:
		return state, yield(bookmark(state.version, false), nil)
	}
	return state, yield(bookmark(state.version, true), nil)
}

// anyFailure is one of the answers to a watch list that say nothing of a LIST.
func (m *model) anyFailure() error {
	codes := []int{403, 404, 500, 501, 502, 503, 504, 0}
	if code := codes[m.random.IntN(len(codes))]; code != 0 {
		return apierrors.NewGenericServerResponse(code, "watch", pods, "", "sim", 0, true)
	}
	return errors.New("sim: an error that is no Status")
}

func event(kind byte, name, object string) listwatch.Event[*corev1.Pod] {
	pod := podOf(name, object)
	types := map[byte]watch.EventType{'+': watch.Added, '~': watch.Modified, '-': watch.Deleted}
	return listwatch.Event[*corev1.Pod]{Type: types[kind], Object: pod, ResourceVersion: pod.ResourceVersion}
}

// changes sends what happened after a version, as it happens, until the server's timeout.
func (m *model) changes(ctx context.Context, from int, timeout int64, yield events) {
	if from < m.floor {
		yield(listwatch.Event[*corev1.Pod]{}, apierrors.NewResourceExpired("too old resource version"))
		return
	}
	began, epoch := time.Now(), m.epoch
	for ctx.Err() == nil && time.Since(began) < time.Duration(timeout)*time.Second && epoch == m.epoch {
		m.step()
		if from < m.floor && m.random.IntN(3) == 0 { // a watcher that fell out of the window
			yield(listwatch.Event[*corev1.Pod]{}, apierrors.NewResourceExpired("too old resource version"))
			return
		}
		i, _ := slices.BinarySearchFunc(m.history, from+1, func(s moment, v int) int { return s.version - v })
		if i >= len(m.history)-m.behind {
			m.sleep(ctx, 10*time.Second) // nothing new
			if from > m.shown().version {
				continue // a version of the future: silence
			}
			if (m.done.Load() || m.random.IntN(4) == 0) && !yield(bookmark(m.shown().version, false), nil) {
				return
			}
			continue
		}
		goOn := m.change(ctx, m.history[i], yield)
		from = m.history[i].version
		if !goOn {
			return
		}
	}
	// A source that forgets to say why it ended must do too.
	if ctx.Err() != nil && m.random.IntN(2) == 0 {
		yield(listwatch.Event[*corev1.Pod]{}, ctx.Err())
	}
}

// change sends one event, or a fault before or in place of it.
func (m *model) change(ctx context.Context, next moment, yield events) bool {
	switch fault := m.fault(12*m.rarity, watchFaults...); fault {
	case "":
	case "end":
		return false
	case "undecodable event", "wrong type", "unknown event type":
		m.lossy = true
		return yield(listwatch.Event[*corev1.Pod]{}, garbled("watch", next.name))
	case "duplicate":
		if !yield(event(next.event, next.name, next.object), nil) {
			return false
		}
	case "replay": // what a proxy or another server sends again
		old := m.at(next.version - m.random.IntN(20))
		if old.event != 0 && !yield(event(old.event, old.name, old.object), nil) {
			return false
		}
	case "future version", "near future", "other backend", "no version":
		if !yield(m.strange(fault, next), nil) {
			return false
		}
	case "bookmark":
		if !yield(bookmark(next.version-1, false), nil) {
			return false
		}
	default:
		if err := m.fail(ctx, fault); err != nil {
			return yield(listwatch.Event[*corev1.Pod]{}, err) && false
		}
	}
	return yield(event(next.event, next.name, next.object), nil)
}

// strange is an event whose version does not fit: the store may differ from then on, until a list.
func (m *model) strange(fault string, next moment) listwatch.Event[*corev1.Pod] {
	m.lossy = true
	uid, _, _ := strings.Cut(next.object, "@")
	switch fault {
	case "future version":
		return event(next.event, next.name, uid+"@99999999999999999999")
	case "near future":
		// The list that follows is older than the version that is believed until then.
		m.wentBack = true
		return event(next.event, next.name, fmt.Sprintf("%s@%d", uid, next.version+1000))
	case "other backend":
		// Older than the stream: a version between two of the stream would seem in order.
		version := m.at(next.version-1).version - 1 - m.random.IntN(100)
		names := []string{next.name, "pod-0", "pod-of-the-other"}
		return event("+~-"[m.random.IntN(3)], names[m.random.IntN(3)], fmt.Sprintf("other@%d", max(1, version)))
	}
	return event(next.event, next.name, uid+"@")
}
