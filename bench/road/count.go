package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tributary-go/tributary/bench/harness"
)

// count is the code that one event ran, by import path.
type count map[string]*part

// part is the code that one event ran in one package, or in several.
type part struct {
	functions map[string]int // how often each ran, or a block of it
	files     map[string]bool
	locks     map[string]int // acquisitions, by file and line
}

func newPart() *part {
	return &part{functions: map[string]int{}, files: map[string]bool{}, locks: map[string]int{}}
}

// measures are the numbers of a part by their names.
func (p part) measures() harness.Figures {
	acquired := 0
	for _, times := range p.locks {
		acquired += times
	}
	return harness.Figures{"functions": float64(len(p.functions)), "files": float64(len(p.files)), "locks": float64(acquired)}
}

// total is the sum of the packages that are asked for.
func (c count) total(wanted func(importPath string) bool) *part {
	sum := newPart()
	for at, p := range c {
		if wanted(at) {
			maps.Copy(sum.functions, p.functions)
			maps.Copy(sum.files, p.files)
			maps.Copy(sum.locks, p.locks)
		}
	}
	return sum
}

func isApimachinery(importPath string) bool {
	return strings.HasPrefix(importPath, "k8s.io/apimachinery/")
}

func isOwn(importPath string) bool { return !isApimachinery(importPath) }

// less reports whether fewer functions have run, or as many with fewer locks.
func (c count) less(other count) bool {
	a, b := c.total(isOwn).measures(), other.total(isOwn).measures()
	return cmp.Or(cmp.Compare(a["functions"], b["functions"]), cmp.Compare(a["locks"], b["locks"])) < 0
}

// list prints the functions and the locks.
func (c count) list() {
	sum := c.total(func(string) bool { return true })
	for _, each := range []struct {
		heading string
		times   map[string]int
	}{{"functions", sum.functions}, {"locks", sum.locks}} {
		fmt.Printf("\n%s:\n", each.heading)
		for _, name := range slices.Sorted(maps.Keys(each.times)) {
			fmt.Printf("%5d %s\n", each.times[name], name)
		}
	}
}

// block is a line of a coverage profile: statements that run together.
type block struct {
	file     string // the import path, a slash, and the name
	from, to position
	times    int
}

type position struct{ line, column int }

func (p position) before(other position) bool {
	return cmp.Or(cmp.Compare(p.line, other.line), cmp.Compare(p.column, other.column)) < 0
}

// parse reads a line of a profile.
func parse(line string) (b block) {
	at := strings.LastIndexByte(line, ':')
	b.file = line[:at]
	var statements int
	harness.Must(fmt.Sscanf(line[at+1:], "%d.%d,%d.%d %d %d", &b.from.line, &b.from.column, &b.to.line, &b.to.column, &statements, &b.times))
	return b
}

// sources has the code of the packages.
type sources struct {
	folders map[string]string // by import path
	mu      sync.Mutex
	read    map[string]source // by import path and name
}

func sourcesOf(ctx context.Context) *sources {
	s := &sources{folders: map[string]string{}, read: map[string]source{}}
	for line := range strings.Lines(command(ctx, "go", "list", "-deps", "-f", "{{.ImportPath}} {{.Dir}}", program)) {
		at, folder, _ := strings.Cut(strings.TrimSpace(line), " ")
		s.folders[at] = folder
	}
	return s
}

// count counts the blocks of a profile that have run, but not those of the benchmarks.
func (s *sources) count(profile string) count {
	c := count{}
	for line := range strings.Lines(string(harness.Must(os.ReadFile(profile)))) {
		if strings.HasPrefix(line, "mode:") || strings.HasPrefix(line, benches) {
			continue
		}
		if b := parse(line); b.times > 0 {
			at := path.Dir(b.file)
			if c[at] == nil {
				c[at] = newPart()
			}
			c[at].add(b, s.of(b.file))
		}
	}
	return c
}

func (s *sources) of(file string) source {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.read[file]; !ok {
		s.read[file] = newSource(string(harness.Must(os.ReadFile(filepath.Join(s.folders[path.Dir(file)], path.Base(file))))))
	}
	return s.read[file]
}

// add counts a block.
func (p *part) add(b block, s source) {
	p.files[b.file] = true
	if name := s.functions[b.from.line]; name != "" {
		full := path.Dir(b.file) + "." + name
		p.functions[full] = max(p.functions[full], b.times)
	}
	for _, lock := range s.locks {
		if !lock.before(b.from) && lock.before(b.to) {
			p.locks[fmt.Sprintf("%s:%d", b.file, lock.line)] = b.times
		}
	}
}

// source is a file's functions, by each of their lines, and its calls of a mutex's Lock or RLock. A
// function literal is part of the function around it.
type source struct {
	functions map[int]string
	locks     []position
}

var (
	declared = regexp.MustCompile(`^func (?:\((?:\w+ )?\*?(\w+)(?:\[[^\]]*\])?\) )?(\w+)`)
	acquired = regexp.MustCompile(`[\w.)]+\.R?Lock\(\)`)
)

// newSource reads formatted code: a function begins and ends at the beginning of a line.
func newSource(text string) source {
	s := source{functions: map[int]string{}}
	name, number := "", 0
	for line := range strings.Lines(text) {
		number++
		if found := declared.FindStringSubmatch(line); found != nil {
			name = strings.TrimPrefix(found[1]+"."+found[2], ".")
		}
		if name != "" {
			s.functions[number] = name
		}
		code, _, _ := strings.Cut(line, "//")
		for _, at := range acquired.FindAllStringIndex(code, -1) {
			s.locks = append(s.locks, position{number, at[0] + 1})
		}
		if line == "}\n" || strings.HasPrefix(line, "func ") && strings.HasSuffix(line, "}\n") {
			name = ""
		}
	}
	return s
}
