package null

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
)

func TestIs(t *testing.T) {
	var client rest.Interface
	for _, v := range []any{nil, client, fake.NewClientset().CoreV1().RESTClient(), (func())(nil), (*int)(nil)} {
		require.True(t, Is(v), "%T", v)
	}
	for _, v := range []any{0, "", []int(nil), map[string]int(nil), new(int), func() {}, fmt.Stringer(nil) == nil, &rest.RESTClient{}} {
		require.False(t, Is(v), "%T", v)
	}
}
