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

// HTTP reads a URL every period. Only an answer that was accepted counts: on an error, on a status
// other than 200, on an empty body or one that is no manifest, the objects stay as they are. A list
// without items is how to say that there are none. An address without http or https, such as an
// empty one, is refused by Run. A proxy from the environment is used, redirects are followed only
// within the same scheme and host.
func HTTP[T store.Object](address string, decode Decode[T], options ...Option) *Reader[T] {
	u := &url[T]{address: address, settings: apply(options), decode: decode}
	return &Reader[T]{kind: "http", ordered: true, decodes: decode != nil, keeper: &u.keeper, run: u.run}
}

const firstBackoff = time.Second

// url is what is behind one. But for keeper it belongs to the goroutine of Run.
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

// next is how long to wait: the period, or after a failure a moment that doubles up to the period, with jitter.
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
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		u.failures++
		err = fmt.Errorf("%s: %w", u.entry.path, err)
		u.keeper.Note(log, access.Round{Problems: append([]error{err}, u.problems...)})
		return
	}
	u.failures = 0
	hand := func() {}
	if got.body != nil {
		hand = u.take(got)
	}
	u.keeper.Hand(log, access.Round{Problems: u.problems, Contact: true, Complete: u.entry.known}, hand)
	log.V(2).Info("Read manifests", "bytes", len(got.body), "changed", got.body != nil, "objects", len(u.entry.objects))
}

// take brings the objects up to date with a new body; hand hands them over. A body in which nothing
// is good is not the first state.
func (u *url[T]) take(got answer) (hand func()) {
	objects, rejected := u.decode(u.entry.path, got.body)
	u.entry.take(objects, rejected)
	now, problems := u.table.join([]*entry[T]{&u.entry})
	u.problems, u.accepted = problems, answer{}
	if len(u.entry.problems) == 0 {
		u.accepted = got
		u.accepted.body = nil
	}
	return func() {
		if u.told = u.told || now.Objects.Len() > 0 || len(u.entry.problems) == 0; u.told {
			u.set(now)
		}
	}
}

// answer is a 200: its body, and what tells it from another one.
type answer struct {
	body           []byte // nil when it is what was accepted before
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
		return answer{}, errors.New("the body is empty: a list without items says that there is nothing")
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
