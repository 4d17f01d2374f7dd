package apiserver

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/watchcache"
)

// serveList answers with a list, written object by object.
func (e *resourceEndpoint[T]) serveList(c call, r watchcache.Request) error {
	page, err := e.cache.Page(c.request.Context(), r)
	if err != nil {
		return err
	}
	return e.respondList(c, page.Meta, page.Objects)
}

// respondList writes a list.
func (e *resourceEndpoint[T]) respondList(c call, header metav1.ListMeta, objects []T) error {
	if err := c.request.Context().Err(); err != nil {
		return err
	}
	c.Header().Set("Content-Type", c.format.contentType(false))
	c.Header().Set("Cache-Control", "no-cache, private")
	w := bufio.NewWriterSize(c, writeBuffer)
	write := e.writeJSON
	if c.format.protobuf {
		write = e.writeProtobuf
	}
	err := write(w, c.format, header, objects)
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		// The status has been sent: a connection that breaks off is all that is left to say that this is no list.
		panic(http.ErrAbortHandler)
	}
	return nil
}

// writeBuffer holds what is written before the connection sees it.
const writeBuffer = 32 << 10

func (e *resourceEndpoint[T]) listKind(f format) metav1.TypeMeta {
	kind, apiVersion := f.kindOr(e.cache.Resource().GroupVersionKind())
	if f.view != asTable {
		kind += "List"
	}
	return typeMeta(kind, apiVersion)
}

// writeJSON writes {"kind":…,"apiVersion":…,"metadata":…,"items":[…]}; a table has columns and rows instead.
func (e *resourceEndpoint[T]) writeJSON(w *bufio.Writer, f format, header metav1.ListMeta, objects []T) error {
	opening := struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ListMeta   `json:"metadata"`
		ColumnDefinitions []metav1.TableColumnDefinition `json:"columnDefinitions,omitempty"`
	}{TypeMeta: e.listKind(f), ListMeta: header}
	items := `,"items":[`
	if f.view == asTable {
		opening.ColumnDefinitions, items = e.codec.definitions(), `,"rows":[`
	}
	doc, err := json.Marshal(opening)
	if err != nil {
		return err
	}
	// bufio.Writer keeps its first error: Flush returns it.
	_, _ = w.WriteString(strings.TrimSuffix(string(doc), "}") + items)
	for i, obj := range objects {
		if i > 0 {
			_ = w.WriteByte(',')
		}
		doc, err := e.codec.item(f, obj)
		if err != nil {
			return err
		}
		if _, err := w.Write(doc); err != nil {
			return err
		}
	}
	_, err = w.WriteString("]}\n")
	return err
}

// writeProtobuf goes over the objects twice: the envelope comes first and tells the length of what follows.
func (e *resourceEndpoint[T]) writeProtobuf(w *bufio.Writer, f format, header metav1.ListMeta, objects []T) error {
	head := binary.AppendUvarint([]byte{listMeta}, uint64(header.Size()))
	head, err := marshalInto(head, &header)
	if err != nil {
		return err
	}
	total := len(head)
	for _, obj := range objects {
		size := e.codec.message(f, obj).Size()
		total += 1 + len(binary.AppendUvarint(nil, uint64(size))) + size
	}
	_, _ = w.Write(envelope(e.listKind(f), total))
	_, _ = w.Write(head)
	var buffer []byte
	for _, obj := range objects {
		m := e.codec.message(f, obj)
		buffer = binary.AppendUvarint(append(buffer[:0], listItems), uint64(m.Size()))
		if buffer, err = marshalInto(buffer, m); err != nil {
			return err
		}
		if _, err := w.Write(buffer); err != nil {
			return err
		}
		total -= len(buffer)
	}
	if total != len(head) {
		return errors.New("apiserver: an object changed while it was listed: stored objects are read-only")
	}
	return nil
}
