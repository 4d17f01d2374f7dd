package sharing_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// An object gets room for as many members as the last one in its place had, but never for more than
// its text can have.
func TestRoomIsMadeForTheMembersOfTheLastObject(t *testing.T) {
	var members []string
	for i := range 60 {
		members = append(members, fmt.Sprintf(`"member-%d":%d`, i, i))
	}
	long := []byte(`{` + strings.Join(members, ",") + `}`)
	memo := newMemo(t)
	decode := func(data []byte) {
		_, err := memo.UnmarshalTree(data)
		require.NoError(t, err)
	}
	decode(long)
	allocs := testing.AllocsPerRun(10, func() { decode(long) })
	require.Less(t, allocs, 9.0) // the map and its table, which else grows three times

	decode([]byte(`{}`)) // has no room for 60
	agreeTree(t, memo, []byte(`{"member-1":1,"member-0":2,"x":[]}`))
	agreeTree(t, memo, long)
}
