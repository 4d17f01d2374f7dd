package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tributary-go/tributary/internal/self"
)

// settings say how much is measured. They are the arguments of the processes that are started, too.
type settings struct {
	Agents  int // one for each node
	PerNode int
	Hour    int // minutes of churn that stand for an hour: less for CI
	Rate    int // pods replaced a second
	Rounds  int // of polls
	Repeat  int
	Only    string
	Share   []int // how many agents share a node, one row for each
}

func main() {
	var s settings
	quick := flag.Bool("quick", false, "small sizes and one repetition: shows that everything runs, not how much it costs")
	flag.IntVar(&s.Agents, "agents", 1000, "agents, one for each node")
	flag.IntVar(&s.PerNode, "pods", 30, "pods of each node")
	flag.IntVar(&s.Rate, "rate", 200, "pods that are replaced a second, until the churn of an hour is written")
	flag.IntVar(&s.Repeat, "repeat", 5, "repetitions of a measurement of memory and of freshness")
	flag.StringVar(&s.Only, "only", "", "measure what has this in its name: memory, bill, load or freshness")
	role := flag.String("role", "", "what a process of its own is: the command starts them itself")
	flag.Parse()
	s.Hour, s.Rounds, s.Share = 60, 10, []int{1, 5, 20}
	if *quick {
		s = settings{Agents: 20, PerNode: 5, Hour: 5, Rate: 20, Rounds: 2, Repeat: 1, Only: s.Only, Share: []int{2}}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, s, *role, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "agents:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings, role string, args []string) error {
	if role != "" {
		if err := json.Unmarshal([]byte(args[0]), &s); err != nil {
			return err
		}
	}
	switch role {
	case "serve":
		return serve(ctx, s)
	case "agents":
		return beAgents(ctx, s, args[1], args[2])
	case "memory":
		return beOne(ctx, args[1], args[2])
	case "neighbour":
		return beNeighbour(ctx, args[1], args[2])
	}
	fmt.Printf("%s, %s/%s, %d CPUs, %s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), time.Now().Format(time.DateOnly))
	for _, part := range []struct {
		name    string
		measure func(context.Context, settings) error
	}{{"memory", measureMemory}, {"bill", measureBill}, {"load", measureLoad}, {"freshness", measureFreshness}} {
		if strings.Contains(part.name, s.Only) {
			if err := part.measure(ctx, s); err != nil {
				return fmt.Errorf("%s: %w", part.name, err)
			}
		}
	}
	return nil
}

// start starts a process in a role, with the same settings.
func (s settings) start(ctx context.Context, role string, args ...string) (*self.Process, error) {
	how, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return self.Start(ctx, append([]string{"-role", role, string(how)}, args...)...)
}

// post asks the server to do something, and for its answer.
func post[T any](ctx context.Context, url string) (answer T, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return answer, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, bytes.TrimSpace(body))
	}
	if err != nil {
		return answer, err
	}
	return answer, json.Unmarshal(body, &answer)
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
