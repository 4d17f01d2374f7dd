package access

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// Settings are the result of the options of the package static, which documents them.
type Settings struct {
	Every, Grace, Timeout time.Duration
	Ticks                 <-chan time.Time // in place of the period, in tests
	Log                   *logr.Logger     // nil: see Logger

	Header                   http.Header
	TokenFile                string
	CAFile                   string
	CertificateFile, KeyFile string
	Socket                   string
	Transport                http.RoundTripper
}

const (
	// defaultEvery is the kubelet's fileCheckFrequency and httpCheckFrequency.
	defaultEvery = 20 * time.Second
	// defaultTimeout is the kubelet's.
	defaultTimeout = 10 * time.Second
	// defaultGrace outlasts a mount that is made again.
	defaultGrace = time.Minute
)

// Default are the settings without any option.
func Default() Settings {
	return Settings{
		Every: defaultEvery, Grace: defaultGrace, Timeout: defaultTimeout,
		Header: http.Header{}, Transport: http.DefaultTransport,
	}
}

// Logger is that of the option, else that of ctx, else klog's.
func (s Settings) Logger(ctx context.Context) logr.Logger {
	if s.Log != nil {
		return *s.Log
	}
	return klog.FromContext(ctx)
}

// Validate names the option that is wrong.
func (s Settings) Validate() error {
	switch {
	case s.Every <= 0:
		return fmt.Errorf("WithInterval(%s): give a positive duration", s.Every)
	case s.Grace < 0:
		return fmt.Errorf("WithGrace(%s): give zero or more", s.Grace)
	case s.Timeout <= 0:
		return fmt.Errorf("WithTimeout(%s): give a positive duration", s.Timeout)
	case s.Transport == nil:
		return errors.New("WithTransport(nil): leave the option out")
	case s.TokenFile != "" && s.Header.Get("Authorization") != "":
		return errors.New("WithTokenFile and an Authorization header: give one of them")
	case (s.CertificateFile == "") != (s.KeyFile == ""):
		return errors.New("WithClientCertificate: give the file of the certificate and that of its key")
	case s.connects() && s.Transport != http.DefaultTransport:
		return errors.New("WithTransport and WithCA, WithClientCertificate or WithUnixSocket: a transport has its own: give one of them")
	}
	return nil
}

// connects reports whether the settings need a transport of their own.
func (s Settings) connects() bool { return s.CAFile != "" || s.CertificateFile != "" || s.Socket != "" }

// Stale is the age at which the state of a reader is stale: two looks were missed, each of which
// may take the timeout.
func (s Settings) Stale() time.Duration { return 3*s.Every + s.Timeout }

// Backoff is the delay after a number of failures in a row: none without one, then a second that
// doubles up to most, with jitter.
func Backoff(failures int, most time.Duration) time.Duration {
	if failures == 0 {
		return 0
	}
	delay := min(time.Second<<min(failures-1, 16), most)
	return delay/2 + rand.N(delay/2+1)
}

// Pause fires once, an interval from now, or never after stop.
func (s Settings) Pause() (over <-chan time.Time, stop func()) {
	if s.Ticks != nil {
		return s.Ticks, func() {}
	}
	timer := time.NewTimer(s.Every)
	return timer.C, func() { timer.Stop() }
}

// Period ticks every interval, until stop.
func (s Settings) Period() (ticks <-chan time.Time, stop func()) {
	if s.Ticks != nil {
		return s.Ticks, func() {}
	}
	ticker := time.NewTicker(s.Every)
	return ticker.C, ticker.Stop
}
