package rv

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLeaps(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{"100", "99999999999999999999", true},
		{"9999999999", "100000000000", true},
		// etcdutl snapshot restore --bump-revision 1000000000.
		{"100", "1000000100", false},
		{"99999999999", "100000000000", false}, // one digit more
		{"1700000000000000000", "9", false},    // back
		{"", "1700000000000000000", false},     // a first version
		{"object", "another-object", false},
		{"9", "another-object", false},
		{"object", "1700000000000000000", false},
		{"1700000000000000000", "1800000000000000000", false},
	} {
		require.Equal(t, c.want, Leaps(c.from, c.to), "%q, then %q", c.from, c.to)
	}
}
