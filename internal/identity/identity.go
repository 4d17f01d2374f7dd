// Package identity carries the name of a client from the access control that finds it to a handler
// around that, such as one with an audit log.
package identity

import "context"

// User is the client of a request, once it is known.
type User struct{ Name string }

type key struct{}

// Expect is a context in which the user will be noted.
func Expect(ctx context.Context) (context.Context, *User) {
	u := &User{}
	return context.WithValue(ctx, key{}, u), u
}

// Note notes the name of the user, if someone expects it.
func Note(ctx context.Context, name string) {
	if u, ok := ctx.Value(key{}).(*User); ok {
		u.Name = name
	}
}
