package self

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// Process is a process of this program that says lines, and ends with its input.
type Process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
}

// Start starts the process of [Command]. Stop it in the end.
func Start(ctx context.Context, args ...string) (*Process, error) {
	cmd, err := Command(ctx, args...)
	if err != nil {
		return nil, err
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &Process{cmd, stdin, bufio.NewScanner(stdout)}, cmd.Start()
}

// Line returns the next line that the process says.
func (p *Process) Line() (string, error) {
	if !p.lines.Scan() {
		return "", fmt.Errorf("a process has ended: %w", cmp.Or(p.lines.Err(), io.ErrUnexpectedEOF))
	}
	return p.lines.Text(), nil
}

// Tell writes a line to the input of the process.
func (p *Process) Tell(words ...any) error {
	_, err := fmt.Fprintln(p.stdin, words...)
	return err
}

// Signal sends the process a signal.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// ID is the process's number.
func (p *Process) ID() int { return p.cmd.Process.Pid }

// Stop ends the input of the process, and waits for its end.
func (p *Process) Stop() {
	_ = p.stdin.Close()
	_ = p.cmd.Wait()
}

// UntilInputEnds returns a context that ends with ctx, or when this process should end.
func UntilInputEnds(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	return ctx
}
