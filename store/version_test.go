package store

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersionCompare(t *testing.T) {
	for _, c := range []struct {
		a, b       string
		order      int
		comparable bool
	}{
		{"5", "7", -1, true}, {"7", "5", 1, true}, {"7", "7", 0, true}, {"9", "10", -1, true},
		{"18446744073709551616", "18446744073709551615", 1, true}, // more than 64 bits
		{"", "5", 0, false}, {"5", "", 0, false}, {"0", "5", 0, false}, {"05", "5", 0, false},
		{"v2", "5", 0, false}, {"v2", "v2", 0, false}, {"-5", "5", 0, false},
	} {
		order, comparable := Version(c.a).Compare(Version(c.b))
		require.Equal(t, c.order, order, "%q and %q", c.a, c.b)
		require.Equal(t, c.comparable, comparable, "%q and %q", c.a, c.b)
	}
}

func TestVersionBeforeAndReaches(t *testing.T) {
	for _, c := range []struct {
		a, b            Version
		before, reaches bool
	}{
		{"5", "7", true, false}, {"7", "5", false, true}, {"7", "7", false, true},
		{"", "7", false, false}, {"7", "", false, true}, {"", "", false, true},
		{"v2", "5", false, false}, {"5", "v2", false, false}, {"v2", "v2", false, true}, {"v2", "", false, true},
	} {
		require.Equal(t, c.before, c.a.Before(c.b), "%q before %q", c.a, c.b)
		require.Equal(t, c.reaches, c.a.Reaches(c.b), "%q reaches %q", c.a, c.b)
	}
}

func TestLater(t *testing.T) {
	for _, c := range []struct{ held, came, want string }{
		{"5", "7", "7"}, {"7", "5", "7"}, {"9", "10", "10"}, {"", "5", "5"}, {"5", "", "5"}, {"5", "v2", "v2"}, {"v2", "5", "5"},
	} {
		require.Equal(t, c.want, later(c.held, c.came), "%q, then %q", c.held, c.came)
	}
}
