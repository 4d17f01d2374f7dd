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
	"time"

	"github.com/munnerz/goautoneg"
)

const (
	// maxViewers bounds the streams of events.
	maxViewers = 100
	// patience is how long a viewer may not read: one that hangs would keep its place for ever.
	patience = 10 * time.Second
)

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
		"bytes": readable, "clock": clock, "count": count, "curve": curve, "link": link, "most": most, "printable": printable,
		"share": share, "stamp": stamp, "words": strings.Fields, "wraps": wraps,
	}).Parse(pageText))

	// policy permits the page's own script and style, and requests to its own server.
	policy = fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; connect-src 'self'; "+
		"base-uri 'none'; form-action 'self'; frame-ancestors 'none'", hashOf(script), hashOf(style))
)

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// ServeHTTP answers GET in the form that the request accepts, and POST if Verify is set.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Security-Policy", policy)
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Vary", "Accept")
	switch {
	case r.Method == http.MethodPost && h.Verify:
		h.serveVerify(w, r)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "the page is read with GET", http.StatusMethodNotAllowed)
		return
	case r.URL.Query().Has("difference"):
		h.serveDifference(w, r.URL.Query().Get("difference"))
		return
	}
	form := asText
	if accept := r.Header.Get("Accept"); accept != "" {
		form = goautoneg.Negotiate(accept, forms)
	}
	if form == asEvents {
		if header.Set("Content-Type", asEvents); r.Method == http.MethodGet {
			h.follow(w, r)
		}
		return
	}
	var body bytes.Buffer
	err := h.write(&body, form, choiceOf(r.URL.Query()))
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

func (h *Handler) write(w io.Writer, form string, c choice) error {
	now := h.look()
	switch form {
	case asText:
		return writeText(w, &now.Document, c)
	case asJSON:
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(now.Document)
	case asHTML:
		return page.ExecuteTemplate(w, "page", struct {
			frame
			Document      Document
			Style         template.CSS
			Script        template.JS
			Differences   bool
			Filter, State string
		}{now.frame(c), now.Document, template.CSS(style), template.JS(script), h.Differences, c.filter, string(c.state)})
	}
	return fmt.Errorf("accept one of %s", strings.Join(forms, ", "))
}

// follow sends the parts of the page that have changed, and the changes of objects, until the
// viewer leaves.
func (h *Handler) follow(w http.ResponseWriter, r *http.Request) {
	told, ok := h.tail.join(h)
	if !ok {
		http.Error(w, fmt.Sprintf("%d viewers follow the page already", maxViewers), http.StatusServiceUnavailable)
		return
	}
	defer h.tail.leave()
	chosen, last := choiceOf(r.URL.Query()), viewer{}
	ticker := time.NewTicker(h.period())
	defer ticker.Stop()
	for {
		now := h.look()
		changes, newest := h.tail.after(h, told)
		err := send(w, struct {
			frame
			At      time.Time `json:"at"`
			Changes []Change  `json:"changes,omitempty"`
			// Left is the number of changes that were too many to be shown.
			Left int `json:"left,omitempty"`
		}{last.news(now.frame(chosen), time.Now(), numbersEvery*h.period()), time.Now().UTC(), changes, newest - told - len(changes)})
		if err != nil {
			return
		}
		told = newest
		select {
		case <-ticker.C:
		case <-r.Context().Done():
			return
		}
	}
}

// send writes an event with one line of JSON.
func send(w http.ResponseWriter, data any) error {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false) // no browser takes the line for a page, and most of it is HTML
	if err := encoder.Encode(data); err != nil {
		return err
	}
	connection := http.NewResponseController(w)
	_ = connection.SetWriteDeadline(time.Now().Add(patience)) // where there are deadlines
	if _, err := fmt.Fprintf(w, "data: %s\n", line.Bytes()); err != nil {
		return err
	}
	return connection.Flush()
}
