package manifest

import (
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
)

// maxOutlined bounds the documents that are parsed again for a line number.
const maxOutlined = 1 << 20

// outline knows the lines of the values of a document. The parser of the values, by the rules of
// YAML 1.1, does not report lines. So a rejected document is parsed again by a newer parser that
// does.
type outline struct {
	root *yamlv3.Node // nil when there is none
}

func newOutline(data []byte) outline {
	var root yamlv3.Node
	if len(data) > maxOutlined || yamlv3.Unmarshal(data, &root) != nil || len(root.Content) == 0 {
		return outline{}
	}
	return outline{root: root.Content[0]}
}

// line is the line of a value, counted from the start of the document, or of the nearest value on
// the way there. The path has the form of spec.containers[0].resources.limits[cpu]. Without an
// outline it is 0.
func (o outline) line(path string) int {
	if o.root == nil {
		return 0
	}
	node, line := o.root, o.root.Line
	for _, step := range splitPath(path) {
		if node.Kind == yamlv3.AliasNode {
			node = node.Alias
		}
		next := child(node, step)
		if next.value == nil {
			break
		}
		node, line = next.value, next.line
	}
	return line
}

// branch is a value and the line of its key; in a sequence, the line of the value.
type branch struct {
	value *yamlv3.Node
	line  int
}

func child(node *yamlv3.Node, step string) branch {
	switch node.Kind {
	case yamlv3.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(node.Content) {
			return branch{node.Content[i], node.Content[i].Line}
		}
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if key := node.Content[i]; key.Value == step {
				return branch{node.Content[i+1], key.Line}
			}
		}
	}
	return branch{}
}

// splitPath takes a.b[0][c.d].e apart into a, b, 0, c.d and e.
func splitPath(path string) []string {
	var steps []string
	for path != "" {
		if rest, ok := strings.CutPrefix(path, "["); ok {
			step, after, _ := strings.Cut(rest, "]")
			steps, path = append(steps, step), after
			continue
		}
		path = strings.TrimPrefix(path, ".")
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		steps, path = append(steps, path[:end]), path[end:]
	}
	return steps
}
