package reviews

import (
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/reflector"
)

// Status is the state of the reviews at one moment.
type Status struct {
	// Tokens are the TokenReviews, Rights the SubjectAccessReviews.
	Tokens, Rights Review
	// Watches are the open watches, whose rights are asked for again.
	Watches int
	// ClientCA is why the file of [WithClientCA] cannot be used now. The authorities that it had
	// before count meanwhile.
	ClientCA error
}

// Review is the state of one kind of review.
type Review struct {
	// Asked counts the questions to the upstream, and Failed those without an answer. These include
	// the ones that waited too long to be sent.
	Asked, Failed uint64
	// Held counts the failed renewals after which a decision was held.
	Held uint64
	// Err is why the upstream gave no answer to the newest question; nil if it answered. It has
	// nothing of the question.
	Err error
	// Class is the kind of Err.
	Class reflector.Class
	// Since is when the first question failed after the last answer.
	Since time.Time
}

// Err is the first problem that keeps clients out, or nil.
func (s Status) Err() error {
	for _, err := range []error{s.Tokens.Err, s.Rights.Err, s.ClientCA} {
		if err != nil {
			return err
		}
	}
	return nil
}

// Status is the state of this moment. It is safe for concurrent use, and does not ask the upstream.
func (r *Reviews) Status() Status {
	s := Status{Tokens: r.asker.status(tokenReviews), Rights: r.asker.status(rightReviews), Watches: int(r.watches.Load())}
	if r.authorities != nil {
		s.ClientCA = r.authorities.problem()
	}
	return s
}

func (a *asker) status(kind string) Review {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.reviews[kind].Review
	if r.Err != nil {
		r.Class = reflector.Classify(r.Err)
	}
	return r
}

// count takes in how a question has ended.
func (r *Review) count(now time.Time, err error) {
	var failed *failure
	switch {
	case err == nil:
		r.Asked++
		r.Err, r.Since = nil, time.Time{}
		return
	case errors.As(err, &failed):
		r.Asked++
		if failed.ofTheQuestion() {
			break
		}
		if r.Err == nil {
			r.Since = now
		}
		r.Err = err
	}
	r.Failed++
}

var table = metrics.NewTable([]string{"server"},
	metrics.Gauge("tributary_reviews_watches", "Open watches with rights that are asked for again.",
		func(s Status) int { return s.Watches }),
	metrics.Gauge("tributary_reviews_client_ca_failing", "1 while the file of client authorities cannot be used.",
		func(s Status) bool { return s.ClientCA != nil }),
	metrics.By("review", func(s Status) map[string]Review {
		return map[string]Review{tokenReviews: s.Tokens, rightReviews: s.Rights}
	},
		metrics.Counter("tributary_reviews_asked_total", "Reviews that the upstream was asked for.",
			func(r Review) uint64 { return r.Asked }),
		metrics.Counter("tributary_reviews_failed_total", "Reviews that the upstream gave no answer to.",
			func(r Review) uint64 { return r.Failed }),
		metrics.Counter("tributary_reviews_held_total", "Failed renewals after which a decision was held.",
			func(r Review) uint64 { return r.Held }),
		metrics.Gauge("tributary_reviews_failing_since_timestamp_seconds", "When the upstream began to give no answers.",
			func(r Review) time.Time { return r.Since }),
		metrics.When(func(r Review) bool { return r.Err != nil },
			metrics.By("class", func(r Review) map[string]bool { return map[string]bool{string(r.Class): true} },
				metrics.Gauge("tributary_reviews_failing", "1 while the upstream gives no answers; the class tells the cause.",
					metrics.Itself[bool])))),
)

// Samples implements [metrics.Reporter]. The name stands for the server.
func (r *Reviews) Samples(name string) iter.Seq[metrics.Sample] {
	return slices.Values(table(r.Status(), name))
}

// Causes implements [metrics.Explainer]: why the upstream gives no answers. The name of a copy is
// the server's, a slash and the review.
func (r *Reviews) Causes(name string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		s := r.Status()
		for _, problem := range []struct {
			part string
			err  error
		}{{tokenReviews, s.Tokens.Err}, {rightReviews, s.Rights.Err}, {"client-ca", s.ClientCA}} {
			if problem.err != nil && !yield(name+"/"+problem.part, problem.err) {
				return
			}
		}
	}
}
