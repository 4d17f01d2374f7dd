package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tributary-go/tributary/internal/pace"
)

const (
	pulseEvery    = 500 * time.Millisecond
	pulsePatience = time.Second       // so that silence is told within two seconds
	alarmEvery    = 5 * time.Second   // between two questions for the alarms of an etcd
	remindEvery   = time.Minute       // while an etcd is silent
	pulseKey      = "tributary/pulse" // there is none
)

// pulse asks an etcd for signs of life. It writes a line when the etcd falls silent, and when it
// answers again, and is a check of /readyz.
type pulse struct {
	client *clientv3.Client
	name   string
	advice string // the remedy
	writes bool   // an etcd that takes no writes is no help
	log    io.Writer

	mu    sync.Mutex // guards the next fields
	since time.Time  // of the first question without an answer; zero while it answers
	why   error
	alarm string // why it takes no writes; empty if it does
}

// beat starts the pulse of an origin, which end ends; nil if the origin needs none.
func (from origin) beat(ctx context.Context, o options, log io.Writer) (p *pulse, end func()) {
	if from.advice == "" {
		return nil, func() {}
	}
	p = &pulse{client: from.client, name: from.name, advice: from.advice, writes: !o.readOnly(), log: log}
	ctx, cancel := context.WithCancel(ctx)
	var ended sync.WaitGroup
	ended.Go(func() { p.run(ctx) })
	return p, func() {
		cancel()
		ended.Wait()
	}
}

// run asks until ctx ends.
func (p *pulse) run(ctx context.Context) {
	var told, looked time.Time
	for ctx.Err() == nil {
		asked := time.Now()
		err := p.ask(ctx)
		if ctx.Err() != nil {
			return
		}
		if told = p.heard(asked, err, told); err == nil && asked.Sub(looked) >= alarmEvery {
			looked = asked
			p.lookForAlarms(ctx)
		}
		pace.Sleep(ctx, time.Until(asked.Add(pulseEvery)))
	}
}

// ask is a read with a quorum.
func (p *pulse) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pulsePatience)
	defer cancel()
	_, err := p.client.Get(ctx, pulseKey)
	if errors.Is(rpctypes.Error(err), rpctypes.ErrPermissionDenied) {
		return nil // it answers, and the user's rights are for the prefix
	}
	return err
}

// heard takes in the outcome of a question, and returns when silence was told last.
func (p *pulse) heard(asked time.Time, err error, told time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	since := p.since
	switch p.why = err; {
	case err == nil && since.IsZero():
		return told
	case err == nil:
		p.since = time.Time{}
		p.say("%s answers again, after %s", p.name, time.Since(since).Round(time.Second))
		return time.Time{}
	case since.IsZero():
		p.since = asked
	case time.Since(told) < remindEvery:
		return told
	}
	p.say("%s has not answered since %s (%s): writes get a 503, reads of the newest state a 503 or 504, "+
		"reads at any version the last state with a warning. %s", p.name, p.since.Format(time.TimeOnly), whySilent(err), p.advice)
	return time.Now()
}

// lookForAlarms asks each member whether it has raised an alarm, such as that of a full disk.
func (p *pulse) lookForAlarms(ctx context.Context) {
	var alarms []string
	for _, endpoint := range p.client.Endpoints() {
		within, cancel := context.WithTimeout(ctx, pulsePatience)
		answer, err := p.client.Status(within, endpoint)
		cancel()
		if err == nil {
			alarms = append(alarms, answer.Errors...)
		}
	}
	slices.Sort(alarms)
	p.alarmed(strings.Join(slices.Compact(alarms), "; "))
}

func (p *pulse) alarmed(alarm string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case alarm == p.alarm:
	case alarm == "":
		p.say("%s has no alarm any more", p.name)
	default:
		p.say("%s has raised an alarm (%s): it takes no writes. If it has no space left, compact and defragment it "+
			"or raise --quota-backend-bytes, then run etcdctl alarm disarm", p.name, alarm)
	}
	p.alarm = alarm
}

// check is the line of /readyz.
func (p *pulse) check(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !p.since.IsZero():
		return fmt.Errorf("no answer since %s (%s)", p.since.UTC().Format(time.RFC3339), whySilent(p.why))
	case p.alarm != "" && p.writes:
		return fmt.Errorf("it takes no writes: %s", p.alarm)
	}
	return nil
}

func (p *pulse) say(format string, values ...any) {
	fmt.Fprintf(p.log, time.Now().Format(time.TimeOnly)+" "+format+"\n", values...)
}

// whySilent is the text of an error.
func whySilent(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("no answer within %s", pulsePatience)
	}
	return rpctypes.ErrorDesc(err)
}
