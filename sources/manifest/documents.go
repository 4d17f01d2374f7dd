package manifest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf16"
)

const byteOrderMark = "\uFEFF"

// document is one document of a YAML stream.
type document struct {
	number int // from 1
	// the line of the manifest, from 1, at which data begins; 1 only if data begins the manifest
	first int
	line  int    // the line at which its content begins
	data  []byte // a part of the manifest, without the marker before it

	// if text follows the document's value, which YAML allows nowhere; known once it is read
	rest    *syntaxError
	outline *outline // made for the first rejection
}

// lineOf is the line of the manifest with the fault: of the fault itself if it is known, or else of
// its item or its document.
func (d *document) lineOf(item int, err error) int {
	var syntax *syntaxError
	if errors.As(err, &syntax) {
		if syntax.line == 0 {
			return d.line
		}
		return d.first + syntax.line - 1
	}
	path := ""
	if item > 0 {
		path = fmt.Sprintf("items[%d].", item-1)
	}
	if fields := (&Error{Err: err}).Fields(); len(fields) > 0 {
		path += fields[0]
	}
	if path == "" {
		return d.line
	}
	if d.outline == nil {
		made := newOutline(d.data)
		d.outline = &made
	}
	if line := d.outline.line(path); line > 0 {
		return d.first + line - 1
	}
	return d.line
}

// splitter cuts a stream into documents. A line that begins with --- or ... ends a document
// wherever it stands, even in a block of text, so that lines are all there is to look at.
type splitter struct {
	documents []document
	next      document // the document under way
	begun     bool     // it has a marker or content, and not only comments and directives
}

func splitDocuments(data []byte) []document {
	s := splitter{next: document{first: 1}}
	offset, start := 0, 0
	for number := 1; offset < len(data); number++ {
		end := offset + lineLength(data[offset:])
		line := bytes.TrimRight(bytes.TrimPrefix(data[offset:end], []byte(byteOrderMark)), "\r\n\u0085\u2028\u2029")
		if offset == 0 { // a stream may have a mark, and each line one more
			line = bytes.TrimPrefix(line, []byte(byteOrderMark))
		}
		switch {
		case isMarker(line, "---"):
			if s.begun {
				s.close(data[start:offset])
				start, s.next.first = offset, number
			}
			s.begun = true
			if len(trim(line)) == len("---") && start == offset {
				start, s.next.first = end, number+1
			} else if len(trim(line)) > len("---") {
				s.content(number)
			}
		case isMarker(line, "..."):
			last := end
			if s.next.line == 0 {
				last = offset // the parser refuses an end marker that nothing stands before
			}
			s.close(data[start:last])
			start, s.next.first = end, number+1
		default:
			s.text(line, number)
		}
		offset = end
	}
	s.close(data[start:])
	return s.documents
}

// text looks at a line that is not a marker.
func (s *splitter) text(line []byte, number int) {
	line = trim(line)
	switch {
	case len(line) == 0, line[0] == '#':
	case line[0] == '%' && !s.begun: // a directive, which waits for the marker of its document
	default:
		s.content(number)
	}
}

func (s *splitter) content(number int) {
	s.begun = true
	if s.next.line == 0 {
		s.next.line = number
	}
}

// close ends the document under way. A document without content is left out, but counted, as a
// reader of the file would count it.
func (s *splitter) close(data []byte) {
	if s.begun {
		s.next.number = 1
		if n := len(s.documents); n > 0 {
			s.next.number = s.documents[n-1].number + 1
		}
		s.next.data = data
		s.documents = append(s.documents, s.next)
	}
	s.next, s.begun = document{}, false
}

// trim leaves out the spaces of YAML. Other spaces of Unicode are content there.
func trim(line []byte) []byte { return bytes.Trim(line, " \t") }

func isMarker(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	return ok && (len(rest) == 0 || rest[0] == ' ' || rest[0] == '\t')
}

// lineLength is the length of the first line and its end; YAML 1.1 knows five ends.
func lineLength(data []byte) int {
	i := bytes.IndexAny(data, "\r\n\u0085\u2028\u2029")
	switch {
	case i < 0:
		return len(data)
	case data[i] == '\n':
		return i + 1
	case data[i] == '\r':
		if i+1 < len(data) && data[i+1] == '\n' {
			return i + 2
		}
		return i + 1
	case data[i] == '\xC2':
		return i + 2
	default:
		return i + 3
	}
}

// toUTF8 converts a UTF-16 manifest, known by its byte order mark, to UTF-8. It returns any other
// as it is.
func toUTF8(data []byte) []byte {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(data, []byte{0xFF, 0xFE}):
		order = binary.LittleEndian
	case bytes.HasPrefix(data, []byte{0xFE, 0xFF}):
		order = binary.BigEndian
	default:
		return data
	}
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = order.Uint16(data[2*i:])
	}
	return []byte(string(utf16.Decode(units)))
}
