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
)

// TestNothingElseIsInMemory searches the whole memory of a program, as a core dump has it, for the
// values of all Secrets on the server. It has those that it refers to, and no other.
func TestNothingElseIsInMemory(t *testing.T) {
	server := listwatchtest.New(t, listwatchtest.Of[*corev1.Secret]())
	values := map[string]int{}
	for i := range planted {
		value := rand.Text() // of 26 letters
		values[value] = i
		server.Create(secret(plantedName(i), strings.Repeat(mark+value, 10_000/len(mark+value))))
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
	for i := range planted {
		require.Equal(t, i < referred, held[i], plantedName(i))
	}
	require.NoError(t, stdin.Close())
	require.NoError(t, agent.Wait())
}

// mark is before each value.
const mark = " planted: "

// find returns which of the values are in the memory of a process.
func find(pid int, values map[string]int) (map[int]bool, error) {
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
		for _, rest := range bytes.Split(content, []byte(mark)) {
			if i, known := values[string(rest[:min(len(rest), 26)])]; known {
				held[i] = true
			}
		}
	}
	if read < 1<<20 {
		return nil, fmt.Errorf("only %d bytes were read", read)
	}
	return held, nil
}
