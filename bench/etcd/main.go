// The command etcd measures how this project reads an etcd beside how an API server does, with the
// storage and the cacher of k8s.io/apiserver, and prints a table.
//
//	go run -C bench ./etcd           # 100,000 pods, and three other kinds
//	go run -C bench ./etcd -quick    # small, for CI: every row once
//	go run -C bench ./etcd -only pods -cpuprofile /tmp/p
//
// One etcd of one member lives in the process that prints. Each figure comes from a fresh process
// that connects to it over loopback, by turns with the others; the table has medians. A first sync
// is from the start to the whole state in the cache. A watch begins when a reader that was stopped
// while all changes were written goes on, and ends when the last change is in the cache. The floor
// is etcd's own client, which receives the same bytes and looks at none of them. The goals are in
// docs/makers/benchmarks.md.
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/tributary-go/tributary/internal/self"
)

// job is what one process measures.
type job struct {
	Reader   string
	Kind     string
	Endpoint string
	Objects  int
	Changes  int    // to be received in a watch; zero: a first sync
	Profile  string // the file for a CPU profile; empty: none
}

// readers are measured by turns.
var readers = []string{floor, apiServer, tributary}

const (
	floor     = "floor: the bytes"
	apiServer = "API server"
	tributary = "ours"
)

func main() {
	quick := flag.Bool("quick", false, "small sizes and one repetition: shows that everything runs, not how fast")
	repeat := flag.Int("repeat", 3, "repetitions of each measurement")
	only := flag.String("only", "", "measure the kinds that have this in their name")
	profile := flag.String("cpuprofile", "", "write the CPU profile of each reader to this path-READER-OPERATION")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if flag.NArg() == 2 && flag.Arg(0) == "measure" {
		var j job
		if err = json.Unmarshal([]byte(flag.Arg(1)), &j); err == nil {
			err = measure(ctx, j)
		}
	} else {
		p := program{part: 1, repeat: *repeat, profile: *profile}
		if *quick {
			p.part, p.repeat = 200, 1
		}
		err = p.run(ctx, *only)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		os.Exit(1)
	}
}

type program struct {
	part    int // of the objects: one in so many
	repeat  int
	profile string
}

func (p program) run(ctx context.Context, only string) error {
	for _, k := range kinds {
		if !strings.Contains(k.name, only) {
			continue
		}
		if err := p.measureKind(ctx, k); err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
	}
	return nil
}

// measureKind fills an etcd, and prints a table of first syncs and one of watches.
func (p program) measureKind(ctx context.Context, k kind) error {
	origin, err := startEtcd(ctx)
	if err != nil {
		return err
	}
	defer origin.close()
	objects, changes := k.objects/p.part, k.changes/p.part
	size, err := origin.fill(ctx, k, objects)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s, %d of %.1f KB", k.name, objects, float64(size)/float64(objects)/1e3)
	j := job{Kind: k.name, Endpoint: origin.endpoint, Objects: objects}
	err = p.table(ctx, "first sync: "+name, "objects/s", j, func(cmd *exec.Cmd) ([]byte, error) { return cmd.Output() })
	if err != nil {
		return err
	}
	j.Changes = changes
	return p.table(ctx, fmt.Sprintf("watch: %d changes of %s", changes, name), "events/s", j, func(cmd *exec.Cmd) ([]byte, error) {
		return origin.whileStopped(ctx, cmd, k, objects, changes)
	})
}

// table measures a job with all readers by turns, and prints the medians.
func (p program) table(ctx context.Context, title, rate string, j job, run func(*exec.Cmd) ([]byte, error)) error {
	runs := map[string][]figures{}
	for range p.repeat {
		for _, j.Reader = range readers {
			if p.profile != "" {
				j.Profile = fmt.Sprintf("%s-%s-%t", p.profile, strings.Fields(j.Reader)[0], j.Changes > 0)
			}
			f, err := measureIn(ctx, j, run)
			if err != nil {
				return fmt.Errorf("%s: %w", j.Reader, err)
			}
			runs[j.Reader] = append(runs[j.Reader], f)
		}
	}
	fmt.Printf("\n### %s\n\n| | wall s | %s | CPU s | allocated MB | allocations/object | peak MB |\n|---|---|---|---|---|---|---|\n", title, rate)
	medians := map[string]figures{}
	for _, reader := range readers {
		f := median(runs[reader])
		medians[reader] = f
		fmt.Printf("| %s | %.2f | %.0f | %.2f | %.0f | %.1f | %.0f |\n", reader, f.Wall, f.Rate, f.CPU, f.AllocatedMB, f.Allocations, f.PeakMB)
	}
	ours, theirs := medians[tributary], medians[apiServer]
	fmt.Printf("| **ours / API server** | **%.2f** | **%.2f** | **%.2f** | **%.2f** | **%.2f** | **%.2f** |\n", ours.Wall/theirs.Wall, ours.Rate/theirs.Rate,
		ours.CPU/theirs.CPU, ours.AllocatedMB/theirs.AllocatedMB, ours.Allocations/theirs.Allocations, ours.PeakMB/theirs.PeakMB)
	return nil
}

// measureIn measures a job in a process of its own.
func measureIn(ctx context.Context, j job, run func(*exec.Cmd) ([]byte, error)) (f figures, err error) {
	asked, err := json.Marshal(j)
	if err != nil {
		return f, err
	}
	cmd, err := self.Command(ctx, "measure", string(asked))
	if err != nil {
		return f, err
	}
	out, err := run(cmd)
	if err != nil {
		return f, err
	}
	return f, json.Unmarshal(out, &f)
}

// whileStopped starts a reader, stops it while all changes are written, and lets it go on.
func (o *origin) whileStopped(ctx context.Context, cmd *exec.Cmd, k kind, objects, changes int) ([]byte, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	said := bufio.NewReader(out)
	for _, n := range []int{1, changes} { // the first one, so that the watch of each reader lives
		var line string
		var revision int64
		if line, err = said.ReadString('\n'); err == nil && line != readyLine {
			err = fmt.Errorf("the reader says %q", line)
		}
		if err == nil {
			err = stop(cmd.Process)
		}
		if err == nil {
			revision, err = o.change(ctx, k, objects, n)
		}
		if err == nil {
			_, err = fmt.Fprintln(in, revision, time.Now().UnixNano())
		}
		if err == nil {
			err = cmd.Process.Signal(syscall.SIGCONT)
		}
		if err != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			return nil, err
		}
	}
	figures, err := io.ReadAll(said)
	return figures, cmp.Or(cmd.Wait(), err)
}

// readyLine is a reader's answer when it has everything so far.
const readyLine = "ready\n"

// stop returns when all threads of a process stand still.
func stop(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	_, err := syscall.Wait4(p.Pid, nil, syscall.WUNTRACED, nil)
	return err
}
