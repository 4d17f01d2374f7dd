package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/bench/harness"
)

// informing is one measurement of one library's informer, the task of a process.
type informing struct {
	Library  string
	What     string // deliver, add, read or stall
	Handlers int
	Indexes  int
	Pods     int
	Events   int
	Stalled  bool
	Read     string // ByIndex or List
}

// inform measures, for five minutes at most.
func inform(ctx context.Context, m informing) harness.Figures {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	return map[string]func(context.Context) harness.Figures{"deliver": m.deliver, "add": m.add, "read": m.read, "stall": m.stall}[m.What](ctx)
}

// counted is a handler that counts, and says when it has come to its goal.
type counted struct {
	told, goal int
	reached    *sync.WaitGroup
}

func (c *counted) handle(p *corev1.Pod) {
	if c.told += touch(p); c.told == c.goal {
		c.reached.Done()
	}
}

// deliver is updates from the source until the last of the handlers has returned from them. They
// come in bursts of 1,000, which is within our ring: every handler is told every one, and the
// process fails otherwise.
func (m informing) deliver(ctx context.Context) harness.Figures {
	const burst = 1000
	source := newFeed(m.Pods)
	var reached sync.WaitGroup
	reached.Add(m.Handlers)
	handlers := make([]*counted, m.Handlers)
	handles := make([]func(*corev1.Pod), m.Handlers)
	for k := range handlers {
		handlers[k] = &counted{goal: m.Pods, reached: &reached}
		handles[k] = handlers[k].handle
	}
	_, stop := launch(ctx, m.Library, source, m.Indexes, handles...)
	defer stop()
	reached.Wait() // the initial lists
	runtime.GC()
	all := harness.Begin(m.Library + "-" + m.What)
	for done := 0; done < m.Events; {
		n := min(burst, m.Events-done)
		done += n
		reached.Add(m.Handlers)
		for _, h := range handlers { // all are idle
			h.goal += n
		}
		source.next <- n
		reached.Wait()
	}
	f, events := all.End(), float64(m.Events)
	return harness.Figures{
		"wall": f["wall"] / events * 1e6, "cpu": f["cpu"] / events * 1e6, "allocs": f["allocs"] / events, "bytes": f["bytes"] / events,
		"deliveries": events * float64(m.Handlers) / f["wall"], "live": harness.Live() / 1e6,
	}
}

// add is a handler that is added to a running informer, until it has been told all objects: the
// mean of ten.
func (m informing) add(ctx context.Context) harness.Figures {
	const times = 10
	i, stop := launch(ctx, m.Library, newFeed(m.Pods), m.Indexes)
	defer stop()
	before := harness.Live()
	all := harness.Begin(m.Library + "-" + m.What)
	var took time.Duration
	for range times {
		var reached sync.WaitGroup
		reached.Add(1)
		began := time.Now()
		remove := i.add((&counted{goal: m.Pods, reached: &reached}).handle)
		reached.Wait()
		took += time.Since(began)
		remove()
	}
	f := all.End()
	return harness.Figures{
		"wall": took.Seconds() / times * 1e3, "cpu": f["cpu"] / times * 1e3, "allocs": f["allocs"] / times, "bytes": f["bytes"] / times / 1e6,
		"peak": (f["peak"] - before) / 1e6,
	}
}

// read is four readers beside a writer.
func (m informing) read(ctx context.Context) harness.Figures {
	f := newFeed(m.Pods)
	i, stop := launch(ctx, m.Library, f, 1)
	defer stop()
	var found atomic.Int64
	read := func(int) { found.Add(int64(i.list())) }
	if m.Read == "ByIndex" {
		read = func(k int) { found.Add(int64(i.byNode(fmt.Sprint("node-", k%(m.Pods/110))))) }
	}
	runtime.GC()
	all := harness.Begin(m.Library + "-" + m.What)
	reads, writes, took := beside(4, time.Second, read, func(int) { f.next <- 1 })
	spent := all.End()
	if found.Load() == 0 {
		harness.Fail("the readers found nothing")
	}
	return harness.Figures{
		"reads": reads / took, "writes": writes / took, "cpu": spent["cpu"] / reads * 1e6, "bytes": spent["bytes"] / reads, "peak": spent["peak"] / 1e6,
	}
}

// stall is updates while one handler keeps up and, where Stalled, another one sleeps through them
// all; then it wakes and must come to know the newest version of every pod.
func (m informing) stall(ctx context.Context) harness.Figures {
	f := newFeed(m.Pods)
	f.deep = true
	last := fmt.Sprint(m.Pods + m.Events)
	var listed, reached sync.WaitGroup
	reached.Add(1)
	handlers := []func(*corev1.Pod){func(p *corev1.Pod) {
		if p.ResourceVersion == last {
			reached.Done()
		}
	}}
	asleep, wake, knows := make(chan struct{}), make(chan struct{}), make(chan int, 1)
	known, unknown := map[string]string{}, map[string]string{} // the handler's, but while it sleeps
	if m.Stalled {
		listed.Add(1)
		count := 0
		handlers = append(handlers, func(p *corev1.Pod) {
			known[p.Name] = p.ResourceVersion
			switch count++; {
			case count == m.Pods:
				listed.Done()
			case count == m.Pods+1:
				close(asleep)
				<-wake
			case count > m.Pods && unknown[p.Name] == p.ResourceVersion:
				if delete(unknown, p.Name); len(unknown) == 0 {
					knows <- count - m.Pods
				}
			}
		})
	} else {
		close(asleep)
	}
	_, stop := launch(ctx, m.Library, f, 0, handlers...)
	listed.Wait()
	before := harness.Live()
	all := harness.Begin(m.Library + "-" + m.What)
	f.next <- 1
	<-asleep
	f.next <- m.Events - 1
	reached.Wait()
	figures := harness.Figures{"live": (harness.Live() - before) / 1e6}
	spent := all.End()
	figures["peak"], figures["wall"] = (spent["peak"]-before)/1e6, spent["wall"]
	for _, p := range f.pods {
		if p.ResourceVersion != known[p.Name] {
			unknown[p.Name] = p.ResourceVersion
		}
	}
	close(wake)
	if m.Stalled {
		began := time.Now()
		select {
		case told := <-knows:
			figures["told"], figures["after"] = float64(told), time.Since(began).Seconds()*1e3
		case <-ctx.Done():
			harness.Fail("the handler that slept does not come to know the newest versions")
		}
	}
	stop()
	return figures
}
