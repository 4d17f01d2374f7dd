package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type dialFunc = func(context.Context, string, string) (net.Conn, error)

// dialer connects to one address, whatever is asked for.
func dialer(address string) dialFunc {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
}

func unixDialer(socket string) dialFunc {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
}

// listeners are the TCP addresses of IPv4 on which a process listens; none if the system does not
// tell.
func listeners(t *testing.T, process int) (addresses []string) {
	t.Helper()
	descriptors := fmt.Sprintf("/proc/%d/fd", process)
	entries, err := os.ReadDir(descriptors)
	if err != nil {
		return nil
	}
	open := map[string]bool{}
	for _, entry := range entries {
		link, _ := os.Readlink(filepath.Join(descriptors, entry.Name())) // it may be closed by now
		open[link] = true
	}
	table, err := os.Open("/proc/net/tcp")
	require.NoError(t, err)
	defer table.Close()
	const listening = "0A"
	for lines := bufio.NewScanner(table); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 || fields[3] != listening || !open["socket:["+fields[9]+"]"] {
			continue
		}
		host, port, _ := strings.Cut(fields[1], ":")
		raw, err := hex.DecodeString(host)
		require.NoError(t, err)
		number, err := strconv.ParseUint(port, 16, 16)
		require.NoError(t, err)
		ip := make(net.IP, 4)
		binary.LittleEndian.PutUint32(ip, binary.BigEndian.Uint32(raw))
		addresses = append(addresses, fmt.Sprintf("%s:%d", ip, number))
	}
	require.NotEmpty(t, addresses)
	return addresses
}
