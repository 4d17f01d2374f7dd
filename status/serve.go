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
	"slices"
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
		"bytes": readable, "clock": clock, "count": count, "curve": curve, "link": link, "most": most, "share": share, "stamp": stamp,
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
	now := h.look()
	switch form {
	case asText:
		return writeText(w, now.Document)
	case asJSON:
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(now.Document)
	case asHTML:
		return page.ExecuteTemplate(w, "page", struct {
			frame
			Document    Document
			Style       template.CSS
			Script      template.JS
			Differences bool
		}{now.html(), now.Document, template.CSS(style), template.JS(script), h.Differences})
	}
	return fmt.Errorf("accept one of %s", strings.Join(forms, ", "))
}

// frame is the HTML of a look, in parts: a viewer is sent the parts that have changed.
type frame struct {
	Summary template.HTML            `json:"summary,omitempty"`
	Order   []string                 `json:"order"` // the names of the rows; nil as before
	Rows    map[string]template.HTML `json:"rows,omitempty"`
}

func render(d Document) frame {
	execute := func(name string, data any) template.HTML {
		var out bytes.Buffer
		if err := page.ExecuteTemplate(&out, name, data); err != nil {
			panic(err) // the templates fit their data
		}
		return template.HTML(out.String())
	}
	f := frame{Summary: execute("summary", summaryOf(d)), Order: []string{}, Rows: map[string]template.HTML{}}
	for _, c := range d.Copies {
		f.Order = append(f.Order, c.Name)
		f.Rows[c.Name] = execute("copy", rowOf(c))
	}
	return f
}

// since is the parts of f that are not in last.
func (f frame) since(last frame) (news frame) {
	if f.Summary != last.Summary {
		news.Summary = f.Summary
	}
	if !slices.Equal(f.Order, last.Order) {
		news.Order = f.Order
	}
	news.Rows = map[string]template.HTML{}
	for name, row := range f.Rows {
		if row != last.Rows[name] {
			news.Rows[name] = row
		}
	}
	return news
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
	var last frame
	ticker := time.NewTicker(h.period())
	defer ticker.Stop()
	for {
		now := h.look().html()
		changes, newest := h.tail.after(h, told)
		err := send(w, struct {
			frame
			At      time.Time `json:"at"`
			Changes []Change  `json:"changes,omitempty"`
			// Left is the number of changes that were too many to be shown.
			Left int `json:"left,omitempty"`
		}{now.since(last), time.Now().UTC(), changes, newest - told - len(changes)})
		if err != nil {
			return
		}
		last, told = now, newest
		select {
		case <-ticker.C:
		case <-r.Context().Done():
			return
		}
	}
}

// send writes an event with one line of JSON.
func send(w http.ResponseWriter, data any) error {
	line, err := json.Marshal(data)
	if err != nil {
		return err
	}
	connection := http.NewResponseController(w)
	_ = connection.SetWriteDeadline(time.Now().Add(patience)) // where there are deadlines
	if _, err := fmt.Fprintf(w, "data: %s\n\n", line); err != nil {
		return err
	}
	return connection.Flush()
}
