package checked

import "github.com/tributary-go/tributary/internal/wire"

const (
	metadataField = 1  // in an object
	labelsField   = 11 // in ObjectMeta
	keyField      = 1  // in an entry of a map
	valueField    = 2
)

// Labels reads the labels of a protobuf message, an object of the API, that decodes. If ok is
// false, only decoding can tell them.
func Labels(data []byte) (labels map[string]string, ok bool) {
	ok = each(data, metadataField, func(metadata []byte) bool {
		return each(metadata, labelsField, func(entry []byte) bool {
			var key, value string
			if labels == nil {
				labels = map[string]string{}
			}
			ok := each(entry, keyField, func(text []byte) bool { key = string(text); return true }) &&
				each(entry, valueField, func(text []byte) bool { value = string(text); return true })
			labels[key] = value
			return ok
		})
	})
	return labels, ok
}

// each calls use for the values of one field, which are length-delimited. It reports false on an
// unusual message.
func each(data []byte, field uint, use func(value []byte) bool) bool {
	for len(data) > 0 {
		number, format, rest, ok := cutTag(data)
		if !ok {
			return false
		}
		value, rest, ok := cut(rest, format)
		if !ok || number == field && (format != wire.Bytes || !use(value)) {
			return false
		}
		data = rest
	}
	return true
}

// JSONLabels reads the labels of a JSON object that decodes. If ok is false, only decoding can tell
// them.
func JSONLabels(data []byte) (labels map[string]string, ok bool) {
	c := checker{data: data}
	labelled := false
	ok = c.members(1, func(key []byte) bool {
		if string(key) != "metadata" {
			return c.value(1)
		}
		return c.once(&c.metadata) && c.is('{') && c.members(2, func(key []byte) bool {
			if string(key) != "labels" {
				return c.value(2)
			}
			labels = map[string]string{}
			return c.once(&labelled) && c.members(2, func(key []byte) bool {
				var text []byte
				of := string(key)
				ok := c.text(&text)
				labels[of] = string(text)
				return ok
			})
		})
	})
	return labels, ok
}
