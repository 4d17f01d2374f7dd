package static

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/tributary-go/tributary/sources/internal/access"
	"github.com/tributary-go/tributary/store"
)

// HTTP reads a URL every interval. Only an accepted answer counts. After an error, a status other
// than 200, an empty body or a body without a manifest, the objects stay as they are, and nothing
// was heard. A list without items declares that there are none. Run refuses an address that does
// not begin with http:// or https://. A proxy from the environment is used. Redirects are followed
// only within the same scheme and host.
func HTTP[T store.Object](address string, decode Decode[T], options ...Option) *Reader[T] {
	u := &url[T]{address: address, settings: apply(options), decode: decode}
	return &Reader[T]{kind: "http", ordered: true, decodes: decode != nil, keeper: &u.keeper, run: u.run}
}

const firstBackoff = time.Second

// url reads one URL. All but keeper belongs to the goroutine of Run.
type url[T store.Object] struct {
	address  string
	settings access.Settings
	decode   Decode[T]
	keeper   access.Keeper
	set      func(State[T])

	client   *access.Client
	entry    entry[T]
	table    table[T]
	told     bool    // a state has been set
	problems []error // of the last body that was taken
	accepted answer  // the last one that was taken without a problem, without its body
	failures int
}

func (u *url[T]) run(ctx context.Context, set func(State[T])) error {
	client, err := access.NewClient(u.address, u.settings)
	if err != nil {
		return err
	}
	defer client.Close()
	u.client, u.set, u.entry.path = client, set, client.Shown()
	u.keeper.StaleAfter(u.settings.Stale())
	u.keeper.Mode(fmt.Sprintf("poll every %s", u.settings.Every))
	for {
		u.poll(ctx)
		timer := time.NewTimer(u.next())
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
	}
}

// next is the delay before the next request: the interval, or after a failure a jittered delay that
// doubles up to the interval.
func (u *url[T]) next() time.Duration {
	if u.failures == 0 {
		return u.settings.Every
	}
	delay := firstBackoff << min(u.failures-1, 16)
	delay = min(delay, u.settings.Every)
	return delay/2 + rand.N(delay/2+1)
}

// poll reads the URL once.
func (u *url[T]) poll(ctx context.Context) {
	log := u.settings.Logger(ctx).WithValues("url", u.entry.path)
	got, err := u.fetch(ctx)
	if err != nil {
		err = fmt.Errorf("%s: %w", u.entry.path, err)
	}
	hand := func() {}
	if err == nil && got.body != nil {
		hand, err = u.take(got)
	}
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		u.failures++
		u.keeper.Note(log, access.Round{Problems: append([]error{err}, u.problems...), Warnings: u.entry.remarks})
		return
	}
	u.failures = 0
	u.keeper.Hand(log, access.Round{Problems: u.problems, Warnings: u.entry.remarks, Contact: true, Complete: u.entry.known}, hand)
	log.V(2).Info("Read manifests", "bytes", len(got.body), "changed", got.body != nil, "objects", len(u.entry.objects))
}

// take brings the objects up to date with a new body. The returned function sets the state. A body
// without a single good object is not a first state, and one without anything of the wanted kind is
// no answer.
func (u *url[T]) take(got answer) (hand func(), err error) {
	objects, rejected := u.decode(u.entry.path, got.body)
	if err := foreignTo(objects, rejected); err != nil {
		return nil, access.Mark("undecodable", fmt.Errorf("%w; the answer has no manifest, and counts as none", err))
	}
	u.entry.take(objects, rejected)
	now, problems := u.table.join([]*entry[T]{&u.entry})
	u.problems, u.accepted = problems, answer{}
	if u.entry.good() {
		u.accepted = got
		u.accepted.body = nil
	}
	return func() {
		if u.told = u.told || now.Objects.Len() > 0 || u.entry.good(); u.told {
			u.set(now)
		}
	}, nil
}

// answer is a response 200: its body, and the marks that tell it from another one.
type answer struct {
	body           []byte // nil if it equals the body that was accepted before
	sum            [sha256.Size]byte
	etag, modified string
}

func (u *url[T]) fetch(ctx context.Context) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, u.settings.Timeout)
	defer cancel()
	known := http.Header{}
	if u.accepted.etag != "" {
		known.Set("If-None-Match", u.accepted.etag)
	}
	if u.accepted.modified != "" {
		known.Set("If-Modified-Since", u.accepted.modified)
	}
	response, err := u.client.Get(ctx, known)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
		return u.read(response)
	case http.StatusNotModified:
		if u.accepted.etag+u.accepted.modified != "" {
			return answer{}, nil
		}
	}
	return answer{}, u.client.Refusal(response.StatusCode, response.Body)
}

func (u *url[T]) read(response *http.Response) (answer, error) {
	body, err := u.client.Body(response)
	switch {
	case err != nil:
		return answer{}, err
	case len(body) == 0:
		return answer{}, access.Mark("undecodable", errors.New("the body is empty: a list without items says that there is nothing"))
	}
	got := answer{
		body: body, sum: sha256.Sum256(body),
		etag: response.Header.Get("ETag"), modified: response.Header.Get("Last-Modified"),
	}
	if got.sum == u.accepted.sum {
		u.accepted.etag, u.accepted.modified = got.etag, got.modified
		got.body = nil
	}
	return got, nil
}
