package checked

import (
	"encoding/binary"

	"github.com/tributary-go/tributary/internal/wire"
)

const managedField = 17 // in ObjectMeta

// Lean cuts metadata.managedFields out of a protobuf message, an object of the API. It writes into
// data, of which the result is a part. The cut bytes are not read.
//
// A message is returned as it is if it has an unusual tag or length, or several fields of metadata.
// A malformed message stays malformed.
func Lean(data []byte) []byte {
	at, ok := metadataIn(data)
	if !ok {
		return data
	}
	of := data[at.value:at.end]
	var space [4]span
	cuts, ok := managedIn(of, space[:0])
	if !ok || len(cuts) == 0 {
		return data
	}
	rest := without(of, cuts)
	var length [binary.MaxVarintLen64]byte
	// The former length took as many bytes, or more.
	n := binary.PutUvarint(length[:], uint64(len(rest)))
	begin := at.end - len(rest) - n - at.length
	copy(data[begin+at.length:], length[:n])
	copy(data[begin:], data[:at.length])
	return data[begin:]
}

// span is a part of a text.
type span struct{ from, to int }

// place is that of a field: of its length, and of its value.
type place struct{ length, value, end int }

// metadataIn finds the metadata, of which there must be one.
func metadataIn(data []byte) (at place, ok bool) {
	for rest := data; len(rest) > 0; {
		number, format, tagless, ok := cutTag(rest)
		if !ok {
			return at, false
		}
		value, after, ok := cut(tagless, format)
		if !ok {
			return at, false
		}
		if number == metadataField {
			if format != wire.Bytes || at.end > 0 {
				return at, false
			}
			end := len(data) - len(after)
			at = place{len(data) - len(tagless), end - len(value), end}
		}
		rest = after
	}
	return at, at.end > 0
}

// managedIn finds the runs of managedFields in the metadata.
func managedIn(metadata []byte, cuts []span) ([]span, bool) {
	for rest := metadata; len(rest) > 0; {
		from := len(metadata) - len(rest)
		number, format, tagless, ok := cutTag(rest)
		if !ok {
			return nil, false
		}
		if _, rest, ok = cut(tagless, format); !ok || number == managedField && format != wire.Bytes {
			return nil, false
		}
		to := len(metadata) - len(rest)
		switch last := len(cuts) - 1; {
		case number != managedField:
		case last >= 0 && cuts[last].to == from:
			cuts[last].to = to
		default:
			cuts = append(cuts, span{from, to})
		}
	}
	return cuts, true
}

// without cuts parts out of data, in place. The end of data stays where it is, since most objects
// have little before their managedFields.
func without(data []byte, cuts []span) []byte {
	begin := cuts[len(cuts)-1].to
	for i := len(cuts) - 1; i >= 0; i-- {
		kept := data[:cuts[i].from]
		if i > 0 {
			kept = kept[cuts[i-1].to:]
		}
		begin -= len(kept)
		copy(data[begin:], kept)
	}
	return data[begin:]
}

// LeanJSON is [Lean] of a JSON object. It reads up to the end of the metadata alone: if another
// metadata follows, that stays as it is. [JSON] does not accept such an object.
func LeanJSON(data []byte) []byte {
	c := checker{data: data}
	var space [2]span
	cuts, ended := space[:0], false
	c.members(1, func(key []byte) bool {
		if string(key) != "metadata" {
			return c.value(1)
		}
		cuts, ended = c.managed(cuts)
		return false
	})
	if !ended || len(cuts) == 0 {
		return data
	}
	return without(data, cuts)
}

// managed finds the members managedFields of the metadata, each with one comma.
func (c *checker) managed(cuts []span) (found []span, ok bool) {
	if !c.is('{') {
		return nil, false
	}
	last, kept := c.at+1, false // the end of the member before
	ok = c.members(2, func(key []byte) bool {
		if string(key) != "managedFields" {
			ok := c.value(2)
			last, kept = c.at, true
			return ok
		}
		if !c.pass() {
			return false
		}
		cut := span{last, c.at}
		if !kept && c.is(',') {
			cut.to = c.at + 1
		}
		last = cut.to
		cuts = append(cuts, cut)
		return true
	})
	return cuts, ok
}

// pass passes over a value. An object or an array is not read.
func (c *checker) pass() bool {
	if b := c.space(); b != '{' && b != '[' {
		return c.value(2)
	}
	var scanner wire.JSONScanner
	n, done := scanner.Feed(c.data[c.at:])
	c.at += n
	return done
}
