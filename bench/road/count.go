package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// count is the code that one event ran, by import path.
type count map[string]*part

// part is the code that one event ran in one package, or in several.
type part struct {
	functions  map[string]int // how often each ran, or a block of it
	files      map[string]bool
	locks      map[string]int // acquisitions, by file and line
	statements int
}

func newPart() *part {
	return &part{functions: map[string]int{}, files: map[string]bool{}, locks: map[string]int{}}
}

// measures are the numbers of a part by their names.
func (p part) measures() map[string]int {
	acquired := 0
	for _, times := range p.locks {
		acquired += times
	}
	return map[string]int{"functions": len(p.functions), "files": len(p.files), "statements": p.statements, "locks": acquired}
}

// String has the cells of a table.
func (p part) String() string {
	m := p.measures()
	return fmt.Sprintf("%d | %d | %d | %d", m["functions"], m["files"], m["statements"], m["locks"])
}

func (c count) packages() []string { return slices.Sorted(maps.Keys(c)) }

// total is the sum of the packages that are asked for.
func (c count) total(wanted func(importPath string) bool) *part {
	sum := newPart()
	for at, p := range c {
		if wanted(at) {
			maps.Copy(sum.functions, p.functions)
			maps.Copy(sum.files, p.files)
			maps.Copy(sum.locks, p.locks)
			sum.statements += p.statements
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
	return cmp.Or(cmp.Compare(a["functions"], b["functions"]), cmp.Compare(a["locks"], b["locks"]), cmp.Compare(a["statements"], b["statements"])) < 0
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
	file              string // the import path, a slash, and the name
	from, to          position
	statements, times int
}

type position struct{ line, column int }

func (p position) compare(other position) int {
	return cmp.Or(cmp.Compare(p.line, other.line), cmp.Compare(p.column, other.column))
}

// readCount counts the blocks of a profile that have run, but not those of the walker.
func readCount(ctx context.Context, profile string) (count, error) {
	file, err := os.Open(profile)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	ran := map[string][]block{} // by file
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "mode:") {
			continue
		}
		var b block
		at := strings.LastIndexByte(lines.Text(), ':')
		b.file = lines.Text()[:max(at, 0)]
		if _, err := fmt.Sscanf(lines.Text()[at+1:], "%d.%d,%d.%d %d %d",
			&b.from.line, &b.from.column, &b.to.line, &b.to.column, &b.statements, &b.times); err != nil {
			return nil, fmt.Errorf("a line of the profile: %q: %w", lines.Text(), err)
		}
		if b.times > 0 && !strings.HasPrefix(b.file, program+"/") {
			ran[b.file] = append(ran[b.file], b)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	c := count{}
	for name, blocks := range ran {
		s, err := sourceOf(ctx, name)
		if err != nil {
			return nil, err
		}
		at := path.Dir(name)
		if c[at] == nil {
			c[at] = newPart()
		}
		c[at].add(name, s, blocks)
	}
	return c, nil
}

// add counts the blocks of a file.
func (p *part) add(name string, s source, blocks []block) {
	p.files[name] = true
	for _, b := range blocks {
		p.statements += b.statements
		for _, f := range s.functions {
			if f.from.compare(b.from) <= 0 && b.to.compare(f.to) <= 0 {
				full := path.Dir(name) + "." + f.name
				p.functions[full] = max(p.functions[full], b.times)
			}
		}
		for _, lock := range s.locks {
			if b.from.compare(lock) <= 0 && lock.compare(b.to) < 0 {
				p.locks[fmt.Sprintf("%s:%d", name, lock.line)] = b.times
			}
		}
	}
}

// source is a file's functions, and its calls of a mutex's Lock or RLock. A function literal is
// part of the function around it.
type source struct {
	functions []function
	locks     []position
}

type function struct {
	name     string
	from, to position
}

// parsed are the files that have been read, by import path and name.
var parsed = struct {
	sync.Mutex
	of map[string]source
	// folders of the packages, by import path
	folders map[string]string
}{of: map[string]source{}, folders: map[string]string{}}

func sourceOf(ctx context.Context, name string) (source, error) {
	parsed.Lock()
	defer parsed.Unlock()
	if s, ok := parsed.of[name]; ok {
		return s, nil
	}
	if len(parsed.folders) == 0 {
		list, err := command(ctx, "go", "list", "-deps", "-f", "{{.ImportPath}} {{.Dir}}", program)
		if err != nil {
			return source{}, err
		}
		for line := range strings.Lines(list) {
			at, folder, _ := strings.Cut(strings.TrimSpace(line), " ")
			parsed.folders[at] = folder
		}
	}
	s, err := parse(filepath.Join(parsed.folders[path.Dir(name)], path.Base(name)))
	if err != nil {
		return source{}, err
	}
	parsed.of[name] = s
	return s, nil
}

func parse(file string) (s source, err error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return s, err
	}
	place := func(p token.Pos) position { at := set.Position(p); return position{at.Line, at.Column} }
	for _, declared := range tree.Decls {
		if f, ok := declared.(*ast.FuncDecl); ok {
			s.functions = append(s.functions, function{nameOf(f), place(f.Pos()), place(f.End())})
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) > 0 {
			return true
		}
		if method, ok := call.Fun.(*ast.SelectorExpr); ok && (method.Sel.Name == "Lock" || method.Sel.Name == "RLock") {
			s.locks = append(s.locks, place(call.Pos()))
		}
		return true
	})
	return s, nil
}

// nameOf is the name of a function, behind its receiver's type and a dot.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	of := f.Recv.List[0].Type
	for {
		switch t := of.(type) {
		case *ast.StarExpr:
			of = t.X
		case *ast.IndexExpr:
			of = t.X
		case *ast.IndexListExpr:
			of = t.X
		case *ast.Ident:
			return t.Name + "." + f.Name.Name
		default:
			return f.Name.Name
		}
	}
}
