package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/tributary-go/tributary/internal/self"
)

// measureMemory measures the memory of an agent of one node, over a program with the same imports
// that does nothing.
func measureMemory(ctx context.Context, s settings) error {
	one := s
	one.Agents, one.PerNode = 1, 110
	server, url, err := one.serve(ctx)
	if err != nil {
		return err
	}
	defer server.Stop()
	libraries := []string{empty, tributary, clientGo}
	all := map[string][]float64{}
	for range s.Repeat {
		for _, library := range libraries {
			p, err := one.start(ctx, "memory", library, url)
			if err != nil {
				return err
			}
			line, err := p.Line()
			p.Stop()
			if err != nil {
				return err
			}
			var bytes float64
			if _, err := fmt.Sscan(line, &bytes); err != nil {
				return err
			}
			all[library] = append(all[library], bytes/(1<<20))
		}
	}
	fmt.Printf("\n### memory of an agent, 110 pods (medians of %d)\n\n| | RSS MiB | over the empty program |\n|---|---|---|\n", s.Repeat)
	base := median(all[empty])
	for _, library := range libraries {
		rss := median(all[library])
		fmt.Printf("| %s | %.1f | %.1f |\n", library, rss, rss-base)
	}
	return nil
}

// serve starts a server.
func (s settings) serve(ctx context.Context) (server *self.Process, url string, err error) {
	server, err = s.start(ctx, "serve")
	if err != nil {
		return nil, "", err
	}
	url, err = server.Line()
	if err != nil {
		server.Stop()
	}
	return server, url, err
}

// measureLoad measures the cost of agents for their server.
func measureLoad(ctx context.Context, s settings) error {
	fmt.Printf("\n### %d agents, %d pods each, 1 %% of the pods replaced a minute\n\n", s.Agents, s.PerNode)
	fmt.Println("| | first state: requests, KB an agent | an hour: requests an agent | KB an agent | CPU s of the server |")
	fmt.Println("|---|---|---|---|---|")
	var writes float64 // CPU of the writer alone
	for _, library := range []string{nobody, tributary, clientGo, polling} {
		first, hour, err := s.load(ctx, library)
		if err != nil {
			return fmt.Errorf("%s: %w", library, err)
		}
		if library == nobody {
			writes = hour.CPU
			fmt.Printf("| %s | | | | %.1f |\n", library, writes)
			continue
		}
		agents := float64(s.Agents)
		if library == polling { // nothing was written meanwhile
			scale := 720 / float64(s.Rounds)
			fmt.Printf("| %s | | %.0f | %.0f | %.1f |\n", library, float64(hour.Requests)*scale/agents, float64(hour.Bytes)*scale/agents/1000, hour.CPU*scale+writes)
			continue
		}
		scale := 60 / float64(s.Hour)
		fmt.Printf("| %s | %.1f, %.0f | %.1f | %.0f | %.1f |\n", library, float64(first.Requests)/agents, float64(first.Bytes)/agents/1000,
			float64(hour.Requests)*scale/agents, float64(hour.Bytes)*scale/agents/1000, hour.CPU*scale)
	}
	return nil
}

// load measures one row: the first state, and the churn of an hour or the rounds of a poll.
func (s settings) load(ctx context.Context, library string) (first, hour figures, err error) {
	server, url, err := s.serve(ctx)
	if err != nil {
		return first, hour, err
	}
	defer server.Stop()
	before, err := post[figures](ctx, url+"/figures")
	if err != nil {
		return first, hour, err
	}
	if library != nobody {
		agents, err := s.start(ctx, "agents", library, url)
		if err != nil {
			return first, hour, err
		}
		defer agents.Stop()
		if _, err := agents.Line(); err != nil {
			return first, hour, err
		}
	}
	synced, err := post[figures](ctx, url+"/figures")
	if err != nil {
		return first, hour, err
	}
	first = synced.since(before)
	if library == polling {
		return figures{}, first, nil
	}
	after, err := post[figures](ctx, url+"/churn")
	if err == nil && library != nobody && first.Bytes == 0 {
		err = errors.New("the agents have read nothing")
	}
	return first, after.since(synced), err
}
