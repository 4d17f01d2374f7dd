// Package harness is the one of all benchmarks. A command has parts; a part has rows: subjects that
// are measured by turns, each in a process of its own, whose figures have names. A table prints
// their medians, and the ratio of ours to theirs; package chart draws them over a number.
//
// A process of its own has a role and a task in JSON. It prints its figures, or the addresses at
// which it serves, for its parent. What fails ends the measurement, by [Must], [Check] or [Fail].
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
type Roles map[string]func(ctx context.Context, task []byte)

// Acts is a role that prints by itself what its parent waits for.
func Acts[T any](act func(ctx context.Context, task T)) func(context.Context, []byte) {
	return func(ctx context.Context, text []byte) {
		var task T
		Check(json.Unmarshal(text, &task))
		act(ctx, task)
	}
}

// Measures is a role that measures, and prints its figures for [Measure].
func Measures[T any](measure func(ctx context.Context, task T) Figures) func(context.Context, []byte) {
	return Acts(func(ctx context.Context, task T) {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
		defer cancel()
		measure(ctx, task).Say()
	})
}

// Main is the main function of a command, or of a process that it starts.
func Main(repeat int, roles Roles, measure func(context.Context, Settings)) {
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
	err := Try(func() {
		switch be := roles[*role]; {
		case be != nil:
			be(ctx, []byte(flag.Arg(0)))
		case *role != "" || flag.NArg() > 0:
			Fail("unknown role %q or argument %q: start it with flags only", *role, flag.Args())
		default:
			fmt.Printf("%s, %s/%s, %d CPUs, client-go %s, %s, repetitions: %d\n", runtime.Version(), runtime.GOOS, runtime.GOARCH,
				runtime.NumCPU(), clientGoVersion(), time.Now().Format(time.DateOnly), s.Repeat)
			measure(ctx, s)
		}
	})
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
	Measure func(context.Context, Settings)
}

// Each measures the parts that have Only in their names.
func (s Settings) Each(ctx context.Context, parts ...Part) {
	for _, part := range parts {
		if s.Wants(part.Name) {
			Within(part.Name, func() { part.Measure(ctx, s) })
		}
	}
}

// Wants reports whether a name has Only in it.
func (s Settings) Wants(name string) bool { return strings.Contains(name, s.Only) }

// Measure has a process of its own measure.
func Measure(ctx context.Context, role string, task any, env ...string) (f Figures) {
	cmd := command(ctx, role, task)
	cmd.Env = append(cmd.Env, env...)
	Check(json.Unmarshal(Must(cmd.Output()), &f))
	return f
}

// Print has a process of its own print for itself.
func Print(ctx context.Context, role string, task any) {
	cmd := command(ctx, role, task)
	cmd.Stdout = os.Stdout
	Check(cmd.Run())
}

func command(ctx context.Context, role string, task any) *exec.Cmd {
	return Must(self.Command(ctx, "-role", role, string(Must(json.Marshal(task)))))
}

// Process is one that serves or acts until its input ends, and the words of its first line.
type Process struct {
	*self.Process
	Words []string
}

// Start starts a process, and waits for its first line. Stop it in the end.
func Start(ctx context.Context, role string, task any) Process {
	p := Process{Process: Must(self.Start(ctx, "-role", role, string(Must(json.Marshal(task)))))}
	line, err := p.Line()
	if err != nil {
		p.Stop()
		Fail("%s: %w", role, err)
	}
	p.Words = strings.Fields(line)
	return p
}

func (p Process) String() string { return strings.Join(p.Words, " ") }

// URL is where a process serves.
func (p Process) URL() string { return p.Words[0] }

// Control is where it is told what to do: at an address of its own, if it has two.
func (p Process) Control() string { return p.Words[len(p.Words)-1] }

// Ask asks a process what it uses, and has been asked.
func (p Process) Ask(ctx context.Context, how string) Figures {
	return Call[Figures](ctx, p.Control()+how)
}

// Do has a process do something, and waits until it has.
func (p Process) Do(ctx context.Context, what string, args ...any) {
	Do(ctx, p.Control()+fmt.Sprintf(what, args...))
}

// Say prints a line for the parent, and returns when the input of this process ends.
func Say(ctx context.Context, words ...any) {
	fmt.Println(words...)
	<-self.UntilInputEnds(ctx).Done()
}
