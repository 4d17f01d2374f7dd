package reflector_test

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

func podAt(name, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: version}}
}

// strange lists one pod at a version; its first watch then adds pods with the versions given, and
// later lists have those pods.
type strange struct {
	listed string
	added  []string // versions
	lists  int
	from   []string // the versions that watches were resumed from
}

func (s *strange) IsWatchListSemanticsUnSupported() bool { return true }

func (s *strange) List(_ context.Context, o metav1.ListOptions) listwatch.List[*corev1.Pod] {
	if o.Limit == 1 || o.Limit == sweepPage {
		none := func(yield func(*corev1.Pod, error) bool) { yield(nil, errors.New("no probes here")) }
		return listwatch.List[*corev1.Pod]{Meta: func() metav1.ListMeta { return metav1.ListMeta{} }, Items: none}
	}
	s.lists++
	pods := []*corev1.Pod{podAt("first", s.listed)}
	if s.lists > 1 {
		for i, version := range s.added {
			pods = append(pods, podAt(strconv.Itoa(i), version))
		}
	}
	return listwatch.List[*corev1.Pod]{
		Meta:  func() metav1.ListMeta { return metav1.ListMeta{ResourceVersion: s.listed} },
		Items: store.Items(pods...),
	}
}

func (s *strange) Watch(ctx context.Context, o metav1.ListOptions) iter.Seq2[listwatch.Event[*corev1.Pod], error] {
	s.from = append(s.from, o.ResourceVersion)
	return func(yield func(listwatch.Event[*corev1.Pod], error) bool) {
		for i, version := range s.added {
			if len(s.from) > 1 {
				break
			}
			if !yield(listwatch.Event[*corev1.Pod]{Type: watch.Added, Object: podAt(strconv.Itoa(i), version), ResourceVersion: version}, nil) {
				return
			}
		}
		<-ctx.Done()
		yield(listwatch.Event[*corev1.Pod]{}, ctx.Err())
	}
}

func versions(from, to int) (all []string) {
	for v := from; v <= to; v++ {
		all = append(all, strconv.Itoa(v))
	}
	return all
}

// TestNoEventIsLostForItsVersion: whatever versions a source has, the copy has all objects within
// moments, says whether a version did not fit, and a relist settles the doubt.
func TestNoEventIsLostForItsVersion(t *testing.T) {
	const future = "99999999999999999999"
	for name, c := range map[string]struct {
		source             strange
		want               int
		unplaced           int
		events             int
		lists, listsBefore int
		resumed            string
	}{
		"a version from the future":    {strange{listed: "100", added: append([]string{future}, versions(201, 250)...)}, 52, 1, 51, 2, 1, "100"},
		"a version of the near future": {strange{listed: "100", added: append([]string{"5000"}, versions(201, 250)...)}, 52, 1, 51, 2, 1, "100"},
		"another backend":              {strange{listed: "100", added: versions(1, 50)}, 51, 1, 0, 2, 2, "100"},
		"no versions":                  {strange{listed: "", added: make([]string, 50)}, 51, 0, 50, 1, 1, ""},
		"no event versions":            {strange{listed: "100", added: make([]string, 50)}, 51, 0, 50, 1, 1, "100"},
		"one version for all":          {strange{listed: "1", added: []string{"1", "1", "1"}}, 4, 0, 3, 1, 1, "1"},
		"versions per object":          {strange{listed: "", added: []string{"7", "1", "3", "1"}}, 5, 0, 4, 1, 1, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				pods := store.NewIndexer[*corev1.Pod]()
				r := reflector.New(&c.source, pods)
				go r.Run(ctx)
				time.Sleep(time.Second) // of the simulated clock
				synctest.Wait()
				require.Equal(t, c.want, pods.Snapshot().Len())
				status := r.Status()
				require.Equal(t, c.unplaced, status.Unplaced)
				require.Equal(t, c.events, status.Events, "none that was not written")
				require.Equal(t, c.listsBefore, c.source.lists)
				// Its lock puts the line above before the next list, for the race detector.
				_ = r.Status()
				require.NotEqual(t, future, status.ResourceVersion)
				require.NotEqual(t, future, pods.Snapshot().ResourceVersion(), "WaitFor would believe it")
				if c.lists > c.listsBefore {
					require.Equal(t, reflector.Unplaced, status.Class)
				} else {
					require.NoError(t, status.Err)
				}
				// The watch ends, without bookmarks, by the liveness period.
				time.Sleep(6 * time.Minute)
				synctest.Wait()
				require.Equal(t, c.want, pods.Snapshot().Len())
				require.Equal(t, c.lists, c.source.lists)
				require.Equal(t, c.lists-1, r.Status().Lists[reflector.Unplaced])
				require.Equal(t, c.resumed, c.source.from[1])
				cancel()
				synctest.Wait()
			})
		})
	}
}

// told is a store without snapshots.
type told struct{ names []string }

func (s *told) Add(p *corev1.Pod) error    { s.names = append(s.names, "+"+p.Name); return nil }
func (s *told) Update(p *corev1.Pod) error { s.names = append(s.names, "~"+p.Name); return nil }
func (s *told) Delete(p *corev1.Pod) error { s.names = append(s.names, "-"+p.Name); return nil }
func (s *told) Replace(items iter.Seq2[*corev1.Pod, error], _ func() string) error {
	for p, err := range items {
		if err != nil {
			return err
		}
		s.names = append(s.names, "="+p.Name)
	}
	return nil
}

func TestAStoreWithoutSnapshotsIsToldInTheServersOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		st := &told{}
		r := reflector.New[*corev1.Pod](&strange{listed: "100", added: []string{"101", "50", "102"}}, st)
		require.NoError(t, r.Run(ctx))
		require.Equal(t, []string{"=first", "+0", "+1", "+2"}, st.names)
		require.Equal(t, 1, r.Status().Unplaced)
		require.Equal(t, 3, r.Status().Events)
	})
}
