// Package harness is what the benchmarks share. A command has rows: subjects that are measured by
// turns, each in a process of its own, whose figures have names. A table prints their medians, and
// the ratio of ours to theirs.
//
// A process of its own has a role and a task in JSON. It prints its figures, or the addresses at
// which it serves, for its parent.
package harness

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-go/tributary/internal/self"
)

// Settings are the flags that every command has.
type Settings struct {
	Quick  bool
	Repeat int // by which every row is repeated; Quick: once
	Only   string
}

// Roles are what further processes of a command can be.
type Roles map[string]func(ctx context.Context, task []byte) error

// Acts is a role that prints by itself what its parent waits for.
func Acts[T any](act func(ctx context.Context, task T) error) func(context.Context, []byte) error {
	return func(ctx context.Context, text []byte) error {
		var task T
		if err := json.Unmarshal(text, &task); err != nil {
			return fmt.Errorf("the task of a process: %w", err)
		}
		return act(ctx, task)
	}
}

// Measures is a role that measures, and prints its figures for [Measure].
func Measures[T any](measure func(ctx context.Context, task T) (Figures, error)) func(context.Context, []byte) error {
	return Acts(func(ctx context.Context, task T) error {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
		defer cancel()
		f, err := measure(ctx, task)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(f)
	})
}

// Main is the main function of a command, or of a process that it starts.
func Main(repeat int, roles Roles, measure func(context.Context, Settings) error) {
	var s Settings
	flag.BoolVar(&s.Quick, "quick", false, "small sizes and one repetition: shows that everything runs, not how fast")
	flag.IntVar(&s.Repeat, "repeat", repeat, "repetitions of each measurement; the tables have medians")
	flag.StringVar(&s.Only, "only", "", "measure what has this in its name")
	role := flag.String("role", "", "what a process of its own is: the command starts them itself")
	flag.Parse()
	if s.Quick {
		s.Repeat = 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch be := roles[*role]; {
	case be != nil:
		err = be(ctx, []byte(flag.Arg(0)))
	case *role != "" || flag.NArg() > 0:
		err = fmt.Errorf("unknown role %q or argument %q: start it with flags only", *role, flag.Args())
	default:
		fmt.Printf("%s, %s/%s, %d CPUs, client-go %s, %s, repetitions: %d\n", runtime.Version(), runtime.GOOS, runtime.GOARCH,
			runtime.NumCPU(), clientGoVersion(), time.Now().Format(time.DateOnly), s.Repeat)
		err = measure(ctx, s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func clientGoVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == "k8s.io/client-go" {
				return d.Version
			}
		}
	}
	return "of unknown version"
}

// Part is one or more tables of a command.
type Part struct {
	Name    string
	Measure func(context.Context, Settings) error
}

// Each measures the parts that have Only in their names.
func (s Settings) Each(ctx context.Context, parts ...Part) error {
	for _, part := range parts {
		if !s.Wants(part.Name) {
			continue
		}
		if err := part.Measure(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", part.Name, err)
		}
	}
	return nil
}

// Wants reports whether a name has Only in it.
func (s Settings) Wants(name string) bool { return strings.Contains(name, s.Only) }

// Measure has a process of its own measure.
func Measure(ctx context.Context, role string, task any, env ...string) (f Figures, err error) {
	cmd, err := command(ctx, role, task)
	if err != nil {
		return nil, err
	}
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	return f, json.Unmarshal(out, &f)
}

// Run has a process of its own print for itself.
func Run(ctx context.Context, role string, task any) error {
	cmd, err := command(ctx, role, task)
	if err != nil {
		return err
	}
	cmd.Stdout = os.Stdout
	return cmd.Run()
}

// command is that of a process of a role.
func command(ctx context.Context, role string, task any) (*exec.Cmd, error) {
	text, err := json.Marshal(task)
	if err != nil {
		return nil, err
	}
	return self.Command(ctx, "-role", role, string(text))
}

// Process is one that serves or acts until its input ends, and the words of its first line.
type Process struct {
	*self.Process
	Words []string
}

// URL is the first word.
func (p Process) URL() string { return p.Words[0] }

// Start starts a process, and waits for its first line. Stop it in the end.
func Start(ctx context.Context, role string, task any) (p Process, err error) {
	text, err := json.Marshal(task)
	if err != nil {
		return p, err
	}
	if p.Process, err = self.Start(ctx, "-role", role, string(text)); err != nil {
		return p, err
	}
	line, err := p.Line()
	if p.Words = strings.Fields(line); err == nil && len(p.Words) == 0 {
		err = fmt.Errorf("it says nothing")
	}
	if err != nil {
		p.Stop()
		return p, fmt.Errorf("%s: %w", role, err)
	}
	return p, nil
}

// Say prints a line for the parent, and returns when the input of this process ends.
func Say(ctx context.Context, words ...any) {
	fmt.Println(words...)
	<-self.UntilInputEnds(ctx).Done()
}

// Numbers is a flag of numbers that are separated by commas, in place of the usual ones.
func Numbers(into *[]int, name, usage string) {
	flag.Func(name, "`numbers`, such as 1,10, in place of the usual "+usage, func(text string) error {
		var list []int
		for part := range strings.SplitSeq(text, ",") {
			n, err := strconv.Atoi(part)
			if err != nil || n < 0 {
				return fmt.Errorf("%q is no number", part)
			}
			list = append(list, n)
		}
		*into = list
		return nil
	})
}
