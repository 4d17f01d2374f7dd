package kubelet

import (
	"fmt"
	"time"
)

// Socket is where kubelets serve the PodsAPI by default: pods-api below the kubelet's root
// directory.
const Socket = "/var/lib/kubelet/pods-api/pods-api.sock"

// Option configures the source.
type Option func(*settings)

type settings struct {
	socket          string
	interval, grace time.Duration
}

func newSettings(options []Option) settings {
	s := settings{
		socket: Socket,
		// A list of 110 pods of 8 KB takes a kubelet 2.5 ms, and the agent twice that: at one a
		// second, most of the CPU time of a quiet agent, and more on a larger node.
		interval: 10 * time.Second,
		// A kubelet reads its manifests every 20 s.
		grace: time.Minute,
	}
	for _, option := range options {
		option(&s)
	}
	return s
}

// WithSocket sets the path of the kubelet's socket. Default [Socket]. A kubelet with another root
// directory has it there.
func WithSocket(path string) Option { return func(s *settings) { s.socket = path } }

// WithInterval sets how often all pods are listed if nothing happens. It bounds how long a change
// of labels, annotations or spec goes unseen, if it comes without a change of status. At least one
// second; default 10 s. One second costs 0.25 % of a core in the kubelet for 110 pods of 8 KB, and
// 0.5 % in the agent.
func WithInterval(d time.Duration) Option { return func(s *settings) { s.interval = d } }

// WithGrace sets how long a missing static pod is kept if the kubelet may have started anew.
// Default one minute. Zero: no missing pod is kept, of the API server neither.
func WithGrace(d time.Duration) Option { return func(s *settings) { s.grace = d } }

func (s settings) validate() error {
	switch {
	case s.socket == "":
		return fmt.Errorf("kubelet: WithSocket(%q): give the path of the kubelet's socket", s.socket)
	case s.interval < gap:
		return fmt.Errorf("kubelet: WithInterval(%s): give %s or more, as a kubelet limits its requests", s.interval, gap)
	case s.grace < 0:
		return fmt.Errorf("kubelet: WithGrace(%s): give zero or more", s.grace)
	}
	return nil
}
