package watchcache

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/internal/pagetoken"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// past is a part of a state that the cache has forgotten.
type past struct {
	version int64
	start   string // the first key
	request Request
}

func pastOf(r Request, version uint64, from *pagetoken.Token) past {
	if from != nil {
		return past{from.Version, from.Start, r}
	}
	return past{int64(version), r.keysBelow(), r}
}

// pastPage answers a LIST of a forgotten state out of the upstream, which is read no further than
// the page reaches. If the upstream has forgotten it too, the error is expired.
func (c *Cache[T]) pastPage(ctx context.Context, upstream listwatch.ListerWatcher[T], at past, keep *selection[T], expired error) (Page[T], error) {
	options := metav1.ListOptions{
		ResourceVersion: formatVersion(uint64(at.version)), ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	}
	if at.start != "" {
		options = metav1.ListOptions{Continue: pagetoken.From(at.start, at.version).String()}
	}
	p := Page[T]{Meta: metav1.ListMeta{ResourceVersion: formatVersion(uint64(at.version))}}
	c.stats.lists.Add(1)
	for obj, err := range upstream.List(ctx, options).Items {
		switch {
		case err == nil:
		case undecodable(err): // it is not in the cache either
			continue
		case apierrors.IsResourceExpired(err):
			return Page[T]{}, expired
		default:
			return Page[T]{}, unproven(ctx, c.kind.GroupResource(), err)
		}
		if keep.namespace != "" && obj.GetNamespace() != keep.namespace && at.start != "" {
			break // the keys of a namespace are together, and the list began there
		}
		c.stats.fetched.Add(1)
		if !keep.matches(obj) {
			continue
		}
		if n, limit := len(p.Objects), at.request.Limit; limit > 0 && int64(n) == limit {
			p.Meta.Continue = pagetoken.After(at.request.belowKeys(store.KeyOf(p.Objects[n-1])), at.version).String()
			break
		}
		p.Objects = append(p.Objects, obj)
	}
	c.stats.returned.Add(uint64(len(p.Objects)))
	return p, ctx.Err()
}
