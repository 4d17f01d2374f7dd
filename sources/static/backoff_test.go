package static_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/sources/manifest"
	"github.com/tributary-go/tributary/sources/static"
)

// answers is a server without a network: what it says of the nth request, and when it was asked.
type answers struct {
	status func(n int) int
	asked  []time.Time
}

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) {
	a.asked = append(a.asked, time.Now())
	return &http.Response{
		StatusCode: a.status(len(a.asked)), Header: http.Header{}, Body: io.NopCloser(strings.NewReader(mapOf("a", "1"))),
	}, nil
}

// A server that fails is asked after a second, then ever later up to the period, each time within
// half of that; and one that answers, each period.
func TestURLBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &answers{status: func(n int) int {
			if n <= 8 {
				return http.StatusServiceUnavailable
			}
			return http.StatusOK
		}}
		o := static.HTTP("http://manifests.example", manifest.Objects[corev1.ConfigMap](configMap),
			static.WithInterval(20*time.Second), static.WithTransport(server))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		require.NoError(t, o.Run(ctx, func(static.State[*corev1.ConfigMap]) {}))
		require.Greater(t, len(server.asked), 12)
		jitter := map[time.Duration]bool{}
		for i := range 12 {
			longest := 20 * time.Second
			if i < 8 {
				longest = min(longest, time.Second<<i)
			}
			gap := server.asked[i+1].Sub(server.asked[i])
			require.LessOrEqual(t, gap, longest, "after request %d", i+1)
			if i >= 8 {
				require.Equal(t, longest, gap, "after request %d", i+1)
				continue
			}
			require.GreaterOrEqual(t, gap, longest/2, "after request %d", i+1)
			jitter[gap%time.Second] = true
		}
		require.Greater(t, len(jitter), 1, "without jitter, all that a server has refused come back together")
	})
}
