package listwatchtest

import "net/http"

// Intercept has f answer the next request, in place of the server. Server is what would have
// answered: f calls it to let the request pass, changed or not, or gives it an
// httptest.ResponseRecorder to see the answer first. f runs on the goroutine of the request and may
// block, which holds the request back; the context of r ends with the test.
//
//	// The write is made, and its answer is lost.
//	pods.Intercept(func(w http.ResponseWriter, r *http.Request, server http.Handler) {
//		server.ServeHTTP(httptest.NewRecorder(), r)
//		w.WriteHeader(http.StatusBadGateway)
//	}, listwatchtest.On(listwatchtest.Create))
//
// An admission webhook is such a function too: it reads the body of r, and refuses, changes or
// warns.
func (c *Collection[T]) Intercept(f func(w http.ResponseWriter, r *http.Request, server http.Handler), options ...FaultOption) *Fault {
	c.server.t.Helper()
	return c.inject("Intercept", effect{request: func(x *exchange) bool {
		f(x, x.request, x.answer)
		return true
	}}, options)
}
