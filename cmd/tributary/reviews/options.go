package reviews

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tributary-go/tributary/internal/null"
)

// Option changes [New].
type Option func(*settings)

// settings has the values that options change.
type settings struct {
	audiences []string
	clientCA  string // a path; empty: no client certificates
	// How long answers of the upstream count.
	renewal time.Duration
	refusal time.Duration
	hold    time.Duration
}

// The renewal is divided: a positive answer is fresh for seven tenths of it. The cache of
// k8s.io/apiserver, which no outage is to fill for long, keeps it for another tenth, and an open
// watch looks again after two.
func (s settings) fresh() time.Duration  { return s.renewal * 7 / 10 }
func (s settings) cached() time.Duration { return s.renewal / 10 }
func (s settings) look() time.Duration   { return s.renewal / 5 }

func newSettings(options []Option) (settings, error) {
	s := settings{
		// The kubelet, the other server on a node that asks for reviews, forgets a token after
		// two minutes and a right after five; API servers behind the aggregator forget both
		// after ten seconds. A minute is easily said, "a right that is taken away is gone
		// within a minute", and costs one small review a minute for each right in use.
		renewal: time.Minute,
		// As API servers behind the aggregator: a client that was started before its role was
		// bound waits for no longer.
		refusal: 10 * time.Second,
		// A restart of the control plane, or a short cut of a site's line.
		hold: 10 * time.Minute,
	}
	err := null.Options("reviews: New", options, func(option Option) { option(&s) })
	if err == nil {
		err = s.validate()
	}
	return s, err
}

func (s settings) validate() error {
	switch {
	case slices.Contains(s.audiences, ""):
		return errors.New("reviews: WithAudiences: an audience is empty: leave it out")
	case s.renewal < time.Second:
		return fmt.Errorf("reviews: WithRenewal(%s): a decision counts for a second at least", s.renewal)
	case s.refusal < 0:
		return fmt.Errorf("reviews: WithRefusal(%s): a time is not negative", s.refusal)
	case s.hold < 0:
		return fmt.Errorf("reviews: WithHold(%s): a time is not negative", s.hold)
	}
	return nil
}

// WithAudiences accepts only tokens that the upstream reports to be for one of these audiences. The
// default is the upstream's own audience, which the usual tokens of service accounts have.
func WithAudiences(audiences ...string) Option {
	return func(s *settings) { s.audiences = append(s.audiences, audiences...) }
}

// WithClientCA accepts client certificates that the authorities of a file in PEM have signed. The
// file is read again within a second of a change. The default is to accept none. The server's
// tls.Config must ask for certificates: with ClientAuth at tls.RequestClientCert.
func WithClientCA(file string) Option { return func(s *settings) { s.clientCA = file } }

// WithRenewal sets how long an accepted token, or a right, counts before the upstream is asked
// again: the longest time for which a right that was taken away is still used. The upstream is
// asked after seven tenths of it. The default is a minute, the minimum a second.
func WithRenewal(every time.Duration) Option { return func(s *settings) { s.renewal = every } }

// WithRefusal sets how long a refused token, or a missing right, is remembered: the longest time
// for which a new right is not seen. The default is ten seconds; zero asks for each request.
func WithRefusal(every time.Duration) Option { return func(s *settings) { s.refusal = every } }

// WithHold sets for how long a decision counts beyond its renewal while the upstream does not
// answer. The default is ten minutes;
// zero holds none.
func WithHold(atMost time.Duration) Option { return func(s *settings) { s.hold = atMost } }
