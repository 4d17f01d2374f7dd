package checked

import "github.com/tributary-go/tributary/internal/wire"

// Tree is the identity of a JSON object, in its bytes.
type Tree struct {
	APIVersion, Kind                      []byte
	Namespace, Name, UID, ResourceVersion []byte
}

// JSON reports that data is a JSON object that decodes into a tree without an error, and that t is
// its identity. If it is false, only decoding can tell.
func JSON(data []byte) (t Tree, ok bool) {
	if len(data) == 0 || data[0] != '{' {
		return t, false
	}
	c := checker{data: data}
	ok = c.members(1, func(key []byte) bool {
		switch string(key) {
		case "apiVersion":
			return c.text(&t.APIVersion)
		case "kind":
			return c.text(&t.Kind)
		case "metadata":
			return c.once(&c.metadata) && c.is('{') && c.members(2, func(key []byte) bool { return c.ofMetadata(&t, key) })
		}
		return c.value(1)
	})
	return t, ok && c.space() == 0 && c.at == len(data)
}

// checker reads JSON from its beginning. Each method returns false on unusual text.
type checker struct {
	data     []byte
	at       int
	metadata bool // has come
	keys     int  // down to this depth, keys matter; at least 2
}

func (c *checker) ofMetadata(t *Tree, key []byte) bool {
	switch string(key) {
	case "namespace":
		return c.text(&t.Namespace)
	case "name":
		return c.text(&t.Name)
	case "uid":
		return c.text(&t.UID)
	case "resourceVersion":
		return c.text(&t.ResourceVersion)
	}
	return c.value(2)
}

func (c *checker) once(seen *bool) (first bool) {
	first, *seen = !*seen, true
	return first
}

// space passes over white space, and returns the next byte; 0 at the end.
func (c *checker) space() byte {
	for ; c.at < len(c.data); c.at++ {
		if b := c.data[c.at]; !wire.IsSpace(b) {
			return b
		}
	}
	return 0
}

func (c *checker) is(want byte) bool { return c.space() == want }

func (c *checker) take(want byte) bool {
	if !c.is(want) {
		return false
	}
	c.at++
	return true
}

// members reads an object. value reads the value after a key. A key with escapes might be one that
// value asks for.
func (c *checker) members(depth int, value func(key []byte) bool) bool {
	if depth > maxDepth || !c.take('{') {
		return false
	}
	for first := true; !c.take('}'); first = false {
		if !first && !c.take(',') || !c.is('"') {
			return false
		}
		raw, ok := c.string()
		if !ok {
			return false
		}
		key, plain := wire.PlainText(raw)
		if !plain && depth <= max(2, c.keys) {
			return false
		}
		if !c.take(':') || !value(key) {
			return false
		}
	}
	return true
}

// text reads a plain string, once.
func (c *checker) text(into *[]byte) bool {
	if *into != nil || !c.is('"') {
		return false
	}
	raw, ok := c.string()
	if !ok {
		return false
	}
	*into, ok = wire.PlainText(raw)
	return ok
}

// value reads any value.
func (c *checker) value(depth int) bool {
	switch b := c.space(); b {
	case '{':
		return c.members(depth+1, func([]byte) bool { return c.value(depth + 1) })
	case '[':
		return c.items(depth + 1)
	case '"':
		_, ok := c.string()
		return ok
	case 't':
		return c.word("true")
	case 'f':
		return c.word("false")
	case 'n':
		return c.word("null")
	}
	return c.number()
}

func (c *checker) items(depth int) bool {
	if depth > maxDepth {
		return false
	}
	c.at++
	for first := true; !c.take(']'); first = false {
		if !first && !c.take(',') || !c.value(depth) {
			return false
		}
	}
	return true
}

func (c *checker) word(want string) bool {
	if len(c.data)-c.at < len(want) || string(c.data[c.at:c.at+len(want)]) != want {
		return false
	}
	c.at += len(want)
	return true
}

// string reads a string with its quotes.
func (c *checker) string() (raw []byte, ok bool) {
	end := wire.StringEnd(c.data, c.at)
	if end < 0 {
		return nil, false
	}
	raw = c.data[c.at:end]
	c.at = end
	if _, plain := wire.PlainText(raw); plain {
		return raw, true
	}
	return raw, isText(raw[1 : len(raw)-1])
}

// isText checks the content of a string: no control characters, and good escapes. Bytes that are no
// UTF-8 are accepted, as decoders do.
func isText(text []byte) bool {
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case b < ' ':
			return false
		case b != '\\':
			continue
		}
		if i++; i == len(text) {
			return false
		}
		switch text[i] {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		case 'u':
			for range 4 {
				if i++; i == len(text) || !isHex(text[i]) {
					return false
				}
			}
		default:
			return false
		}
	}
	return true
}

func isHex(b byte) bool {
	return b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'f'
}

// number reads a number without an exponent, and not so long that it could be out of range.
func (c *checker) number() bool {
	if c.at < len(c.data) && c.data[c.at] == '-' {
		c.at++
	}
	begin := c.at
	whole := c.digits()
	if whole == 0 || whole > maxDigits || whole > 1 && c.data[begin] == '0' {
		return false
	}
	if c.at < len(c.data) && c.data[c.at] == '.' {
		c.at++
		if n := c.digits(); n == 0 || n > maxDigits {
			return false
		}
	}
	return c.at == len(c.data) || c.data[c.at]|0x20 != 'e'
}

// maxDigits is far fewer than a float may have on either side of the point.
const maxDigits = 100

func (c *checker) digits() (n int) {
	for ; c.at < len(c.data) && c.data[c.at] >= '0' && c.data[c.at] <= '9'; c.at++ {
		n++
	}
	return n
}
