package robustness_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/client/pkg/v3/types"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.uber.org/zap"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/e2e/netfault"
)

const (
	size          = 3               // members
	anonymous     = size            // the sender of requests that do not name theirs
	quota         = 16 << 20        // bytes of a member's database
	attempt       = 2 * time.Second // of one request of the harness
	stubborn      = time.Minute     // of what must succeed in the end
	snapshotAfter = 100             // entries of the log after which the older ones are forgotten,
	catchUp       = 20              // but for so many
	clusterToken  = "e2e-members"   // of the cluster, of which member IDs are made
)

// member is one etcd in a process of its own.
type member struct {
	*cluster.Process
	number                       int
	id                           types.ID
	data                         string // the folder
	client, peer, points, others string // addresses: of requests, of peers, and of what sets faults
	admin                        *clientv3.Client
}

// members are an etcd of three members. All peer traffic goes through proxies, one for each pair
// and direction.
type members struct {
	t     *testing.T
	all   []*member
	links [size + 1][size]*netfault.Proxy // by the member that has connected, and the other one
}

// startMembers returns when each of them answers.
func startMembers(t *testing.T) *members {
	t.Helper()
	binary := memberBinary(t)
	c := &members{t: t}
	var names []string
	for i := range size {
		m := &member{
			number: i, data: t.TempDir(), client: cluster.FreeAddress(t), peer: cluster.FreeAddress(t),
			points: cluster.FreeAddress(t), others: cluster.FreeAddress(t),
		}
		c.all = append(c.all, m)
		for from := range size + 1 {
			c.links[from][i] = netfault.Listen(t, m.peer)
		}
		advertised := "http://" + c.sortSenders(i)
		m.id = membership.NewMember("", types.MustNewURLs([]string{advertised}), clusterToken, nil).ID
		names = append(names, fmt.Sprintf("m%d=%s", i, advertised))
	}
	for i, m := range c.all {
		_, advertised, _ := strings.Cut(names[i], "=")
		m.Process = cluster.NewProcess(t, fmt.Sprint("etcd-", i), binary, []string{
			fmt.Sprint("--name=m", i), "--data-dir=" + m.data,
			"--listen-client-urls=http://" + m.client, "--advertise-client-urls=http://" + m.client,
			"--listen-peer-urls=http://" + m.peer, "--initial-advertise-peer-urls=" + advertised,
			"--initial-cluster=" + strings.Join(names, ","), "--initial-cluster-token=" + clusterToken,
			"--heartbeat-interval=50", "--election-timeout=500",
			// A kill does not lose what the kernel has, so that syncs would only take time.
			"--unsafe-no-fsync", "--log-level=error",
			// A member that was cut off needs a snapshot, and compactions take several batches.
			fmt.Sprint("--snapshot-count=", snapshotAfter), fmt.Sprint("--snapshot-catchup-entries=", catchUp), "--compaction-batch-limit=20",
			fmt.Sprint("--quota-backend-bytes=", quota), "--grpc-keepalive-min-time=1s",
		}, "GOFAIL_HTTP="+m.points, "FAULTS_HTTP="+m.others)
		m.Start()
		m.admin = connectTo(t, m.client)
	}
	c.healthy()
	return c
}

// connectTo makes a client that finds dead connections, and is closed with the test.
func connectTo(t *testing.T, addresses ...string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: addresses, Logger: zap.NewNop(),
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: time.Second,
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// addresses are where clients reach the members without a proxy.
func (c *members) addresses() (all []string) {
	for _, m := range c.all {
		all = append(all, m.client)
	}
	return all
}

// revive starts the members that have ended.
func (c *members) revive() {
	c.t.Helper()
	for _, m := range c.all {
		if m.HasEnded() {
			m.Kill()
			m.Start()
		}
	}
}

// healthy waits until each member runs and answers a read with a quorum. Links must not be broken.
func (c *members) healthy() {
	c.t.Helper()
	const mayEnd = 10 // times
	for i, m := range c.all {
		ends := 0
		for deadline := time.Now().Add(stubborn); !m.answers(); pass(10 * time.Millisecond) {
			require.True(c.t, time.Now().Before(deadline), "member %d does not answer", i)
			if m.HasEnded() {
				ends++
				require.LessOrEqual(c.t, ends, mayEnd, "member %d ends again and again", i)
				c.revive()
			}
		}
	}
}

func (m *member) answers() bool {
	ctx, cancel := context.WithTimeout(context.Background(), attempt)
	defer cancel()
	_, err := m.admin.Get(ctx, "health")
	return err == nil
}

// leader is the leader by the account of the members that answer; nil if there is none now.
func (c *members) leader() *member {
	for _, m := range c.all {
		ctx, cancel := context.WithTimeout(context.Background(), attempt)
		status, err := m.admin.Status(ctx, m.client)
		cancel()
		if err != nil {
			continue
		}
		for _, other := range c.all {
			if uint64(other.id) == status.Leader {
				return other
			}
		}
	}
	return nil
}

// sender is the number of the member that a request to a peer names.
func (c *members) sender(r *http.Request) int {
	for i, m := range c.all {
		if r.Header.Get("X-Server-From") == m.id.String() {
			return i
		}
	}
	return anonymous
}

// sortSenders listens for the peers of a member, and passes each connection on to the proxy of the
// member that has made it: its first request says which.
func (c *members) sortSenders(to int) (address string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(c.t, err)
	var passing sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	pass := func(connection net.Conn) {
		defer connection.Close()
		defer context.AfterFunc(ctx, func() { _ = connection.Close() })()
		var seen bytes.Buffer
		request, err := http.ReadRequest(bufio.NewReader(io.TeeReader(connection, &seen)))
		if err != nil {
			return
		}
		link, err := net.Dial("tcp", c.links[c.sender(request)][to].Address())
		if err != nil {
			return
		}
		defer link.Close()
		defer context.AfterFunc(ctx, func() { _ = link.Close() })()
		if _, err := link.Write(seen.Bytes()); err != nil {
			return
		}
		var back sync.WaitGroup
		defer back.Wait()
		back.Go(func() {
			_, _ = io.Copy(connection, link)
			_ = connection.Close()
		})
		_, _ = io.Copy(link, connection)
		_ = link.Close()
	}
	passing.Go(func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			passing.Go(func() { pass(connection) })
		}
	})
	c.t.Cleanup(func() {
		stop()
		_ = listener.Close()
		passing.Wait()
	})
	return listener.Addr().String()
}

// linksOf are the links of a member, in both directions.
func (c *members) linksOf(of int) (all []*netfault.Proxy) {
	for from := range c.links {
		for to, link := range c.links[from] {
			if from == of || to == of {
				all = append(all, link)
			}
		}
	}
	return all
}

// setClock moves a member's wall clock.
func (m *member) setClock(by time.Duration) error {
	return ask(http.MethodPost, m.others, "clock", by.String(), nil)
}

// limitFiles makes writes past so many bytes of a file fail, until the member ends.
func (m *member) limitFiles(bytes int) error {
	return ask(http.MethodPost, m.others, "limit", fmt.Sprint(bytes), nil)
}

// arm sets a failpoint, such as to "panic" or "off".
func (m *member) arm(point, terms string) error {
	return ask(http.MethodPut, m.points, point, terms, nil)
}

// reached is how often a failpoint has been executed.
func (m *member) reached(point string) (times int) {
	_ = ask(http.MethodGet, m.points, point+"/count", "", &times)
	return times
}

// ask makes one request to a control address of a member.
func ask(method, address, path, body string, number *int) error {
	ctx, cancel := context.WithTimeout(context.Background(), attempt)
	defer cancel()
	target := url.URL{Scheme: "http", Host: address, Path: "/" + path}
	request, err := http.NewRequestWithContext(ctx, method, target.String(), strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Close = true
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode/100 != 2 {
		err = errors.New(string(text))
	}
	if err == nil && number != nil {
		_, err = fmt.Sscan(string(text), number)
	}
	return err
}

// freeze stops a member where it stands; thaw lets it go on.
func (m *member) freeze() { m.Signal(syscall.SIGSTOP) }
func (m *member) thaw()   { m.Signal(syscall.SIGCONT) }
