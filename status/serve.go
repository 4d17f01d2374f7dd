package status

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/munnerz/goautoneg"
)

// maxViewers bounds the streams of events.
const maxViewers = 100

// viewers counts them.
type viewers struct{ atomic.Int32 }

// The forms of an answer, by media type. The first one is for a client that accepts anything.
const (
	asText   = "text/plain"
	asJSON   = "application/json"
	asHTML   = "text/html"
	asEvents = "text/event-stream"
)

var forms = []string{asText, asJSON, asHTML, asEvents}

var (
	//go:embed page.css
	style string
	//go:embed page.js
	script string
	//go:embed page.html
	pageText string

	page = template.Must(template.New("page").Funcs(template.FuncMap{
		"age": age, "curve": curve, "bytes": readable, "link": link, "list": strings.Join,
	}).Parse(pageText))

	// policy permits the page's own script and style, and events from its own server.
	policy = fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; connect-src 'self'; "+
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'", hashOf(script), hashOf(style))
)

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// ServeHTTP answers GET in the form that the request accepts.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Security-Policy", policy)
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Vary", "Accept")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "the page is read with GET", http.StatusMethodNotAllowed)
		return
	}
	form := asText
	if accept := r.Header.Get("Accept"); accept != "" {
		form = goautoneg.Negotiate(accept, forms)
	}
	if form == asEvents {
		h.follow(w, r)
		return
	}
	var body bytes.Buffer
	err := h.write(&body, form)
	if err != nil {
		code := http.StatusInternalServerError
		if form == "" {
			code = http.StatusNotAcceptable
		}
		http.Error(w, err.Error(), code)
		return
	}
	header.Set("Content-Type", form+"; charset=utf-8")
	_, _ = w.Write(body.Bytes())
}

func (h *Handler) write(w io.Writer, form string) error {
	d := h.Document()
	switch form {
	case asText:
		return writeText(w, d)
	case asJSON:
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(d)
	case asHTML:
		return page.ExecuteTemplate(w, "page", struct {
			Document
			Style  template.CSS
			Script template.JS
		}{d, template.CSS(style), template.JS(script)})
	}
	return fmt.Errorf("accept one of %s", strings.Join(forms, ", "))
}

// follow sends the table of the page whenever it has changed, until the viewer leaves.
func (h *Handler) follow(w http.ResponseWriter, r *http.Request) {
	if h.viewers.Add(1) > maxViewers {
		h.viewers.Add(-1)
		http.Error(w, fmt.Sprintf("%d viewers follow the page already", maxViewers), http.StatusServiceUnavailable)
		return
	}
	defer h.viewers.Add(-1)
	w.Header().Set("Content-Type", asEvents)
	flush := http.NewResponseController(w)
	var last []byte
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		var now bytes.Buffer
		if page.ExecuteTemplate(&now, "table", h.Document()) != nil {
			return
		}
		if !bytes.Equal(now.Bytes(), last) {
			last = now.Bytes()
			// A line of an event has no line break.
			if _, err := fmt.Fprintf(w, "data: %s\n\n", bytes.ReplaceAll(last, []byte("\n"), []byte("\ndata: "))); err != nil {
				return
			}
			if flush.Flush() != nil {
				return
			}
		}
		select {
		case <-ticker.C:
		case <-r.Context().Done():
			return
		}
	}
}

// writeText writes one screen: a line for each copy, and what is wrong below it.
func writeText(w io.Writer, d Document) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s  %d copies, heap %s\n\n", d.At.Format(time.RFC3339), len(d.Copies)+d.Hidden, readable(d.HeapBytes))
	fmt.Fprintf(&out, "%-9s %-32s %-10s %9s %9s %10s %10s\n", "STATE", "NAME", "KIND", "OBJECTS", "EVENTS/S", "HEARD", "READER LAG")
	for _, c := range d.Copies {
		lag := "-"
		if len(c.Readers) > 0 {
			lag = seconds(c.Readers[0].LagSeconds)
		}
		fmt.Fprintf(&out, "%-9s %-32s %-10s %9d %9.1f %10s %10s\n",
			c.State, printable(c.Name), c.Kind, c.Objects, c.EventsPerSecond, age(d.At, c.LastContact), lag)
		for _, line := range c.Causes {
			fmt.Fprintf(&out, "          cause: %s\n", printable(line))
		}
		for _, line := range c.Advice {
			fmt.Fprintf(&out, "          do:    %s\n", line)
		}
	}
	if d.Hidden > 0 {
		fmt.Fprintf(&out, "and %d more\n", d.Hidden)
	}
	_, err := w.Write(out.Bytes())
	return err
}

// printable has no control characters, which a terminal would obey.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '?'
		}
		return r
	}, text)
}

// age is how long ago at was.
func age(now, at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return seconds(now.Sub(at).Seconds())
}

func seconds(s float64) string {
	return time.Duration(max(0, s) * float64(time.Second)).Round(time.Second).String()
}

func readable(bytes uint64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

// curve is the points of a line in a box of 60 by 16.
func curve(hour []int) string {
	most := 1
	for _, n := range hour {
		most = max(most, n)
	}
	var points strings.Builder
	for i, n := range hour {
		fmt.Fprintf(&points, "%d,%.1f ", 60-len(hour)+i, 15.5-15*float64(n)/float64(most))
	}
	return points.String()
}

// docs explains the states.
const docs = "https://github.com/tributary-go/tributary/blob/main/docs/freshness.md"

func link(state State) string {
	switch state {
	case Syncing, Restored:
		return docs + "#the-first-state"
	case Late:
		return docs + "#readers-downstream"
	case Failing:
		return docs + "#partial-or-with-wrong-content"
	}
	return docs + "#behind-the-server"
}
