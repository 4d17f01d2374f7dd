package h2park

const (
	// parkFrom is the window of a connection from which its streams are parked. The server keeps a
	// quarter at most, so three quarters are in use when parked streams lack some: a client that
	// grants what it has read, once that is half of its window, then does so.
	parkFrom = 256 << 10
	// serverMost is the largest window that the server is given at once.
	serverMost = 1 << 20
)

// credit is the window of a connection, for what is sent to the client. The server and the parked
// streams share it: server + pool is what the client allows.
type credit struct {
	server int64 // what the server takes for its window
	pool   int64 // for parked streams, and to refill the server's window
	most   int64 // the largest server + pool so far
}

func newCredit() credit { return credit{server: initialWindow, most: initialWindow} }

// grant adds what the client allows. It is false, and nothing is added, if that is more than a
// window can be.
func (c *credit) grant(n int64) bool {
	if c.server+c.pool+n > maxWindow {
		return false
	}
	c.pool += n
	c.most = max(c.most, c.server+c.pool)
	return true
}

// capacity is the largest window that the server is given.
func (c *credit) capacity() int64 { return min(max(c.most/4, initialWindow), serverMost) }

// refill moves credit to the server, whose window has fallen under half of its capacity, and
// returns how much. While parked streams wait, the server gets half of what there is.
func (c *credit) refill(contended bool) (n int64) {
	if capacity := c.capacity(); c.server < (capacity+1)/2 {
		n = min(c.pool, capacity-c.server)
		if contended {
			n = min(n, (c.pool+1)/2)
		}
	}
	c.server += n
	c.pool -= n
	return n
}
