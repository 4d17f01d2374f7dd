package watchcache

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// serveList answers with a list, written object by object.
func (e *resourceEndpoint[T]) serveList(c call, o listOptions, keep *selection[T]) error {
	var from *pageToken
	if o.Continue != "" {
		token, err := parseToken(o.Continue)
		if err != nil {
			return badRequest("invalid continue token: %v", err)
		}
		from = &token
	}
	state, err := e.stateFor(c.request.Context(), o, from)
	if err != nil {
		return err
	}
	if o.ResourceVersion == "0" {
		o.Limit = 0 // a list at any version comes whole, as out of the API server's cache
	}
	p := cut(sorted(keep.in(state.state)), state.version, from, o.Limit)
	header := metav1.ListMeta{ResourceVersion: formatVersion(p.version), Continue: p.next}
	if remaining := int64(p.remaining); remaining > 0 && !keep.selective() {
		header.RemainingItemCount = &remaining
	}
	return e.respondList(c, header, p.objects)
}

// stateFor is the state that a list shows.
func (e *resourceEndpoint[T]) stateFor(ctx context.Context, o listOptions, from *pageToken) (view[T], error) {
	switch {
	case from != nil && from.Version == latestVersion:
		return e.cache.latest()
	case from != nil:
		state, err := e.cache.exactly(ctx, uint64(from.Version))
		if apierrors.IsResourceExpired(err) {
			fresh := *from
			fresh.Version = latestVersion
			return state, pageExpired(fresh.String())
		}
		return state, err
	case o.version == 0:
		return e.cache.latest()
	case o.ResourceVersionMatch == metav1.ResourceVersionMatchExact,
		o.ResourceVersionMatch == "" && o.Limit > 0: // before there was a match parameter, pages were exact
		return e.cache.exactly(ctx, o.version)
	}
	return e.cache.notOlderThan(ctx, o.version)
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
	kind, apiVersion := f.kindOr(e.cache.resource.Kind, e.cache.resource.apiVersion())
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
		return errors.New("watchcache: an object changed while it was listed: stored objects are read-only")
	}
	return nil
}
