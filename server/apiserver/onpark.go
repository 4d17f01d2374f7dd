package apiserver

import "context"

// Parking is called for a watch that leaves its handler: see [OnPark]. hangUp ends the watch, at
// any time and any number of times. The watch calls left once, after its end.
type Parking func(hangUp context.CancelFunc) (left func())

type parkingKey struct{}

// OnPark adds a function to the context of a request, for handlers around a [Server] that end or
// count watches. With [ParkIdleWatches], ServeHTTP returns while a watch goes on: the context of
// its request has ended then, and no longer ends the watch. ServeHTTP calls the function before it
// returns. It calls none for other requests, such as watches over HTTP/2: these end with their
// context. If several handlers add functions, each is called.
func OnPark(ctx context.Context, parking Parking) context.Context {
	if outer := parkingOf(ctx); outer != nil {
		inner := parking
		parking = func(hangUp context.CancelFunc) func() {
			leftOuter, leftInner := outer(hangUp), inner(hangUp)
			return func() {
				leftInner()
				leftOuter()
			}
		}
	}
	return context.WithValue(ctx, parkingKey{}, parking)
}

// parkingOf is nil if no handler has added a function.
func parkingOf(ctx context.Context) Parking {
	parking, _ := ctx.Value(parkingKey{}).(Parking)
	return parking
}
