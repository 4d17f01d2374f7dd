package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// jsonConverter makes a tree from YAML fit for JSON: each key becomes a string.
type jsonConverter struct {
	budget  int  // how much more may be converted; aliases make it more than there is in the text
	anyTwin bool // of two keys that become one string, either counts; otherwise they are a fault
}

// convert returns the same tree for the same text: no result depends on the order of a Go map.
func (c *jsonConverter) convert(node any) (any, error) {
	c.budget--
	if c.budget < 0 {
		return nil, ErrTooLarge
	}
	switch node := node.(type) {
	case string:
		c.budget -= len(node)
		return node, nil
	case []any:
		for i := range node {
			item, err := c.convert(node[i])
			if err != nil {
				return nil, below(fmt.Sprintf("[%d]", i), err)
			}
			node[i] = item
		}
		return node, nil
	case map[any]any:
		return c.object(node)
	default:
		return node, nil
	}
}

// object converts a mapping. Of several faults it returns the one with the first text.
func (c *jsonConverter) object(node map[any]any) (object map[string]any, worst error) {
	if c.anyTwin {
		dropTwins(node)
	}
	object = make(map[string]any, len(node))
	for key, value := range node {
		name, err := jsonKey(key)
		if err == nil {
			c.budget -= len(name)
			if _, twin := object[name]; twin {
				err = &typeFault{field: clip("[" + name + "]"), why: "two keys are one in JSON: give each once, as a text"}
			} else if object[name], err = c.convert(value); err != nil {
				err = below(name, err)
			}
		}
		switch {
		case errors.Is(err, ErrTooLarge):
			return nil, err
		case err != nil && (worst == nil || err.Error() < worst.Error()):
			worst = err
		}
	}
	if worst != nil {
		return nil, worst
	}
	return object, nil
}

// below adds a step before the field of a fault.
func below(step string, err error) error {
	fault, ok := err.(*typeFault)
	if !ok {
		return err
	}
	if !strings.HasPrefix(fault.field, "[") {
		step += "."
	}
	return &typeFault{field: clip(step + fault.field), why: fault.why}
}

// dropTwins removes keys that become the same string as another key. The text key stays, or else
// the first by type and value. The kubelet keeps the last one in the order of a Go map.
func dropTwins(node map[any]any) {
	var others []any // the keys that are no text
	for key := range node {
		if _, text := key.(string); !text {
			others = append(others, key)
		}
	}
	slices.SortFunc(others, func(a, b any) int {
		return cmp.Or(cmp.Compare(fmt.Sprintf("%T", a), fmt.Sprintf("%T", b)), cmp.Compare(number(a), number(b)))
	})
	seen := map[string]bool{}
	for _, key := range others {
		name, err := jsonKey(key)
		if err != nil {
			continue
		}
		if _, text := node[name]; text || seen[name] {
			delete(node, key)
		}
		seen[name] = true
	}
}

func number(key any) float64 {
	switch key := key.(type) {
	case int:
		return float64(key)
	case int64:
		return float64(key)
	case float64:
		return key
	}
	return 0
}

func jsonKey(key any) (string, error) {
	switch key := key.(type) {
	case string:
		return key, nil
	case int:
		return strconv.Itoa(key), nil
	case int64:
		return strconv.FormatInt(key, 10), nil
	case bool:
		return strconv.FormatBool(key), nil
	case float64:
		text := strconv.FormatFloat(key, 'g', -1, 32)
		if special, ok := map[string]string{"+Inf": ".inf", "-Inf": "-.inf", "NaN": ".nan"}[text]; ok {
			return special, nil
		}
		return text, nil
	default:
		return "", errors.New("the key of a mapping must be a string")
	}
}
