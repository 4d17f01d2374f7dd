package watchcache

import (
	"context"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/internal/pagetoken"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/server/internal/apierror"
)

// Request is a LIST, a WATCH or a GET of a part of a collection, with its selectors parsed. The
// options mean the same as in metav1.ListOptions. The zero value keeps everything, at the latest
// version.
type Request struct {
	// Namespace keeps the objects of one namespace; empty keeps all.
	Namespace string
	// Name keeps the objects of one name; empty keeps all.
	Name string

	internalversion.ListOptions
}

// requestOf parses the selectors of options.
func requestOf(options metav1.ListOptions) (r Request, err error) {
	err = internalversion.Convert_v1_ListOptions_To_internalversion_ListOptions(&options, &r.ListOptions, nil)
	if err != nil {
		return r, apierrors.NewBadRequest(err.Error())
	}
	return r, nil
}

// Validate checks a request by the API server's rules. Errors: 422 if options contradict each
// other, 400 if one of them has no meaning.
func (r Request) Validate() error {
	_, err := r.version()
	return err
}

// version validates a request and reads its resource version; zero means any.
func (r Request) version() (uint64, error) {
	if errs := validation.ValidateListOptions(&r.ListOptions, true); len(errs) > 0 {
		return 0, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
	}
	version := uint64(0)
	if r.ResourceVersion != "" {
		var err error
		if version, err = strconv.ParseUint(r.ResourceVersion, 10, 64); err != nil {
			const text = "invalid resource version: %q is not a decimal number"
			if r.Watch || r.Name != "" { // the API server has a status for that of a list only
				return 0, apierror.Unclassified(text, r.ResourceVersion)
			}
			return 0, apierror.BadRequest(text, r.ResourceVersion)
		}
	}
	if r.Continue != "" && version != 0 {
		return 0, apierror.BadRequest("specifying resource version is not allowed when using continue")
	}
	return version, r.checkName()
}

// keysBelow is the beginning of all keys that the request means. Tokens have the rest of a key, as
// those of kube-apiserver do.
func (r Request) keysBelow() string {
	if r.Namespace == "" {
		return ""
	}
	return r.Namespace + "/"
}

func (r Request) belowKeys(key string) string { return strings.TrimPrefix(key, r.keysBelow()) }

// checkName: the name of the request and the one in its field selector may not differ.
func (r Request) checkName() error {
	if r.Name == "" || r.FieldSelector == nil || r.FieldSelector.Empty() {
		return nil
	}
	if selected, ok := r.FieldSelector.RequiresExactMatch(nameField); !ok || selected != r.Name {
		return apierror.BadRequest("fieldSelector metadata.name doesn't match requested name")
	}
	return nil
}

// List implements [listwatch.ListerWatcher]. The objects are those of one snapshot, and errors are
// API status errors; see [Cache.Page].
func (c *Cache[T]) List(ctx context.Context, options metav1.ListOptions) listwatch.List[T] {
	var meta metav1.ListMeta
	return listwatch.List[T]{
		Items: func(yield func(T, error) bool) {
			var page Page[T]
			r, err := requestOf(options)
			if err == nil {
				page, err = c.Page(ctx, r)
			}
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			meta = page.Meta
			for _, obj := range page.Objects {
				if !yield(obj, nil) {
					return
				}
			}
		},
		Meta: func() metav1.ListMeta { return meta },
	}
}

// Page answers a LIST from one snapshot, in the order of keys, NAMESPACE/NAME. It waits until the
// cache has reached the version of the request, but no longer than [WithFreshWait]. Without a
// version, the cache is first proven fresh: see [WithUpstream]. Errors are API status errors: 400
// and 422 for bad options, 410 for a version that is forgotten (by the upstream too, if that can
// list: see [Upstream]), 429 while the cache is empty, 503 if the upstream cannot be asked, 504 for
// a version that is not reached.
func (c *Cache[T]) Page(ctx context.Context, r Request) (Page[T], error) {
	version, err := r.version()
	if err != nil {
		return Page[T]{}, err
	}
	keep, err := c.bind(r)
	if err != nil {
		return Page[T]{}, err
	}
	var from *pagetoken.Token
	if r.Continue != "" {
		token, err := pagetoken.Parse(r.Continue)
		if err != nil {
			return Page[T]{}, apierror.BadRequest("invalid continue token: %v", err)
		}
		token.Start = r.keysBelow() + token.Start
		from = &token
	}
	state, err := c.stateFor(ctx, r, version, from)
	if past, ok := c.config.upstream.(listwatch.ListerWatcher[T]); ok && apierrors.IsResourceExpired(err) {
		return c.pastPage(ctx, past, pastOf(r, version, from), keep, err)
	}
	if err != nil {
		return Page[T]{}, err
	}
	if r.ResourceVersion == "0" {
		r.Limit = 0 // a list at any version comes whole, as out of the API server's cache
	}
	objects, whole := keep.sorted(state)
	p, remaining := cut(objects, state.version, from, r)
	p.whole = whole
	c.stats.lists.Add(1)
	c.stats.fetched.Add(keep.fetched)
	c.stats.returned.Add(uint64(len(p.Objects)))
	if left := int64(remaining); left > 0 && !keep.selective() {
		p.Meta.RemainingItemCount = &left
	}
	return p, nil
}

// Get answers a GET of the object that the request names, at the latest version or not older than
// the request's. Errors: NotFound, and those of [Cache.Page].
func (c *Cache[T]) Get(ctx context.Context, r Request) (obj T, err error) {
	version, err := r.version()
	if err != nil {
		return obj, err
	}
	var now view[T]
	if r.ResourceVersion == "" {
		now, err = c.fresh(ctx)
	} else {
		now, err = c.notOlderThan(ctx, version)
	}
	if err != nil {
		return obj, err
	}
	obj, ok := now.present.Get(c.kind.Key(r.Namespace, r.Name))
	if !ok {
		return obj, apierrors.NewNotFound(c.kind.GroupResource(), r.Name)
	}
	return obj, nil
}

// ResourceVersion is the version up to which the cache is complete now: that of its last write, or
// of the last write to any cache of its [Revision].
func (c *Cache[T]) ResourceVersion() string { return formatVersion(c.current()) }

// stateFor is the state that a list shows.
func (c *Cache[T]) stateFor(ctx context.Context, r Request, version uint64, from *pagetoken.Token) (view[T], error) {
	switch {
	case from != nil && from.Version == pagetoken.Latest, from == nil && r.ResourceVersion == "":
		return c.fresh(ctx)
	case from != nil:
		state, err := c.exactly(ctx, uint64(from.Version))
		if apierrors.IsResourceExpired(err) {
			fresh := *from
			fresh.Version, fresh.Start = pagetoken.Latest, r.belowKeys(fresh.Start)
			return state, pageExpired(fresh.String())
		}
		return state, err
	case version == 0:
		return c.latest()
	case r.ResourceVersionMatch == metav1.ResourceVersionMatchExact,
		// Before there was a match parameter, pages were exact.
		r.ResourceVersionMatch == "" && r.Limit > 0:
		return c.exactly(ctx, version)
	}
	return c.notOlderThan(ctx, version)
}

var _ listwatch.ListerWatcher[*metav1.PartialObjectMetadata] = (*Cache[*metav1.PartialObjectMetadata])(nil)
