package refs_test

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/server/builtin"
)

// TestNothingElseIsInMemory searches the whole memory of a program, as a core dump has it, for the
// values of all Secrets on the server. It has those that it refers to, and no other.
func TestNothingElseIsInMemory(t *testing.T) {
	server := listwatchtest.New(t, builtin.Of[*corev1.Secret]())
	var values []string
	for i := range planted {
		value := rand.Text() + rand.Text()
		values = append(values, value)
		server.Create(secret(plantedName(i), strings.Repeat(value+" ", 10_000/len(value))))
	}
	agent := exec.CommandContext(t.Context(), os.Args[0])
	agent.Env = append(os.Environ(), agentOf+"="+server.Server().Listen().Host)
	agent.Stderr = os.Stderr
	stdin, err := agent.StdinPipe()
	require.NoError(t, err)
	stdout, err := agent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, agent.Start())
	lines := bufio.NewScanner(stdout)
	require.True(t, lines.Scan(), "the agent has ended")
	require.Equal(t, "ready", lines.Text())

	held, err := find(agent.Process.Pid, values)
	require.NoError(t, err)
	for i := range values {
		require.Equal(t, i < referred, held[i], plantedName(i))
	}
	require.NoError(t, stdin.Close())
	require.NoError(t, agent.Wait())
}

// find reports for each value whether it is in the memory of a process.
func find(pid int, values []string) (map[int]bool, error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, err
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return nil, err
	}
	defer memory.Close()
	held, read := map[int]bool{}, 0
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		var rights string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &rights); err != nil {
			return nil, err
		}
		if !strings.HasPrefix(rights, "rw") { // what a program writes
			continue
		}
		content := make([]byte, to-from)
		n, _ := memory.ReadAt(content, int64(from)) // some pages of the kernel cannot be read
		content = content[:n]
		read += n
		for i, value := range values {
			held[i] = held[i] || bytes.Contains(content, []byte(value))
		}
	}
	if read < 1<<20 {
		return nil, fmt.Errorf("only %d bytes were read", read)
	}
	return held, nil
}
