package packed

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
)

// The state of an object is its UID and its resource version. Both take fewer bytes if they have
// their usual form, from which the text follows. Else they are text after its length.

// appendState appends a state. form says how it is written.
func appendState(b []byte, uid, resourceVersion string) (state []byte, form flags) {
	if uuid, ok := uuidOf(uid); ok {
		b, form = append(b, uuid[:]...), flagUUID
	} else {
		b = appendText(b, uid)
	}
	if n, ok := numberOf(resourceVersion); ok {
		return binary.AppendUvarint(b, n), form | flagNumber
	}
	return appendText(b, resourceVersion), form
}

// cutState splits the state off, as copies.
func cutState(b []byte, form flags) (uid, resourceVersion string, rest []byte) {
	uid, b = cutUID(b, form)
	if form&flagNumber == 0 {
		version, rest, _ := cutText(b)
		return uid, string(version), rest
	}
	n, size := binary.Uvarint(b)
	return uid, strconv.FormatUint(n, 10), b[size:]
}

func cutUID(b []byte, form flags) (uid string, rest []byte) {
	if form&flagUUID == 0 {
		text, rest, _ := cutText(b)
		return string(text), rest
	}
	var text [uuidLen]byte
	at := 0
	for i, part := range b[:16] {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			text[at] = '-'
			at++
		}
		at += hex.Encode(text[at:], []byte{part})
	}
	return string(text[:]), b[16:]
}

// skipState is what follows the state.
func skipState(b []byte, form flags) (rest []byte) {
	if form&flagUUID != 0 {
		b = b[16:]
	} else {
		_, b, _ = cutText(b)
	}
	if form&flagNumber == 0 {
		_, b, _ = cutText(b)
		return b
	}
	_, size := binary.Uvarint(b)
	return b[size:]
}

const uuidLen = 36

// uuidOf reads a UID in its usual form: lower hexadecimal digits in groups of 8, 4, 4, 4 and 12.
func uuidOf(uid string) (uuid [16]byte, ok bool) {
	if len(uid) != uuidLen {
		return uuid, false
	}
	at := 0
	for i := 0; i < uuidLen; i++ {
		b, digit := uid[i], byte(0)
		switch {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if b != '-' {
				return uuid, false
			}
			continue
		case b >= '0' && b <= '9':
			digit = b - '0'
		case b >= 'a' && b <= 'f':
			digit = b - 'a' + 10
		default:
			return uuid, false
		}
		uuid[at/2] = uuid[at/2]<<4 | digit
		at++
	}
	return uuid, true
}

// numberOf reads a resource version that is a decimal number without leading zeros.
func numberOf(version string) (n uint64, ok bool) {
	const digits = 19 // of which each number has room
	if version == "" || len(version) > digits || version[0] == '0' && len(version) > 1 {
		return 0, false
	}
	for i := 0; i < len(version); i++ {
		digit := version[i] - '0'
		if digit > 9 {
			return 0, false
		}
		n = n*10 + uint64(digit)
	}
	return n, true
}
