package reflector_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/reflector"
)

// TestValidateNamesAllBadOptions, and not the first alone.
func TestValidateNamesAllBadOptions(t *testing.T) {
	require.NoError(t, reflector.Validate())
	err := reflector.Validate(nil, reflector.WithLiveness(-time.Second), reflector.WithBackoff(2, 1),
		reflector.WithWatchTimeout(time.Millisecond), reflector.WithPageSize(-1), reflector.WithMetrics(nil))
	require.EqualError(t, err, `reflector: option 1 is nil: leave it out
reflector: WithLiveness(-1s): give a positive duration
reflector: WithBackoff(2ns, 1ns): give a positive delay and a limit not below it
reflector: WithWatchTimeout(1ms): give at least a second
reflector: WithPageSize(-1): give 0 or more
reflector: WithMetrics(nil): leave the option out`)
}
