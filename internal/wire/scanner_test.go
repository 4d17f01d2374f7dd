package wire_test

import (
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/internal/wire"
)

// alphabet has the bytes that a scan looks at, and neighbours of theirs.
const alphabet = "{}[]\"\\,: \n1a!#[\\]^{|}yY_\x00\x1f\x7f\x80\xdb\xff"

// slowEnd follows brackets and strings byte by byte, as JSONScanner does by words. inner is the end
// of the first object or array directly in the value; open tells that the value has not ended.
func slowEnd(text string) (end, inner int, open bool) {
	depth, scalar := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			if i >= len(text) {
				return len(text), inner, true
			}
			if depth == 0 {
				return i + 1, inner, false
			}
		case c == '{' || c == '[':
			if scalar {
				return i, inner, false
			}
			depth++
		case c == '}' || c == ']':
			if depth == 0 {
				return i, inner, false
			}
			if depth--; depth == 0 {
				return i + 1, inner, false
			}
			if depth == 1 && inner == 0 {
				inner = i + 1
			}
		case depth == 0 && strings.IndexByte(", :\n\r\t", c) >= 0:
			return i, inner, false
		default:
			scalar = depth == 0
		}
	}
	return len(text), inner, true
}

func randomText(random *rand.Rand) string {
	text := make([]byte, random.Intn(100))
	few := 1 + random.Intn(len(alphabet))
	for i := range text {
		text[i] = alphabet[random.Intn(few)]
		if random.Intn(3) > 0 {
			text[i] = "abc\xc3\xa4"[random.Intn(5)]
		}
	}
	return strings.Repeat("[", random.Intn(5)) + string(text)
}

// In pieces of any length, the scanner finds the same end as a loop over bytes.
func TestScannerFindsTheEndThatALoopOverBytesFinds(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewSource(seed))
	for range 20_000 {
		text := randomText(random)
		end, inner, open := slowEnd(text)
		var s wire.JSONScanner
		at, done := 0, false
		for at < len(text) && !done {
			piece := text[at:min(len(text), at+1+random.Intn(40))]
			var n int
			n, done = s.Feed([]byte(piece))
			at += n
		}
		require.Equal(t, end, at, "%q", text)
		require.Equal(t, !open, done, "%q", text)
		require.Equal(t, inner, s.Inner, "%q", text)
	}
}

func TestDocumentFindsTheEndThatALoopOverBytesFinds(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewSource(seed))
	var d wire.Document
	for range 20_000 {
		text := `["` + randomText(random) + `",{"` + randomText(random)
		d.Begin([]byte(text))
		for d.At = 0; d.At < len(text); d.At++ {
			if c := text[d.At]; c != '{' && c != '[' && c != '"' {
				continue
			}
			end, _, open := slowEnd(text[d.At:])
			value := d.Value()
			if open {
				require.Empty(t, value, "%q at %d", text, d.At)
			} else {
				require.Equal(t, text[d.At:d.At+end], string(value), "%q at %d", text, d.At)
			}
		}
	}
}

func TestPlainTextIsPrintableASCIIWithoutEscapes(t *testing.T) {
	for length := range 20 {
		text := []byte(`"` + strings.Repeat("x", length) + `"`)
		for at := range length {
			for c := range 256 {
				text[1+at] = byte(c)
				_, ok := wire.PlainText(text)
				require.Equal(t, c >= ' ' && c < 0x7f && c != '\\', ok, "%q", text)
			}
			text[1+at] = 'x'
		}
	}
}
