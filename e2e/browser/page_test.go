package browser

import (
	"bytes"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the pictures in docs/images")

const (
	desktop, desktopHeight = 1280, 760
	phone, phoneHeight     = 390, 844
	// maxPicture keeps the repository small.
	maxPicture = 100 << 10
)

// row is the state of a copy's row, as an expression.
func row(name, state string) string {
	return fmt.Sprintf("document.querySelector('[data-name=\"%s\"]')?.classList.contains('%s')", name, state)
}

// TestAPersonSeesTheStaleCopy: the page, once opened, shows the copies synced; failing, with the
// cause and what to do, after their server was killed; and well again.
func TestAPersonSeesTheStaleCopy(t *testing.T) {
	p := startProgram(t)
	b := open(t, p.page+"#copy=pods", desktop, desktopHeight)
	b.until(row("pods", "synced") + " && " + row("node-1/api", "synced") + " && " + row("node-1/file", "synced") + " && " + row("relay/nodes", "synced"))
	b.until("document.querySelector('#verdict').innerText === 'All is well: 4 copies synced'")
	p.label("dns", "system")
	b.until("document.querySelector('#tail').innerText.includes('default/dns')")
	b.until("document.querySelector('#panel .late')?.innerText.startsWith('flow-exporter: 1 behind, ')")

	p.kill()
	b.until(row("pods", "failing") + " && " + row("node-1/api", "failing") + " && " + row("relay/nodes", "failing"))
	for _, c := range []struct {
		name  string
		texts []string
	}{
		{"pods", []string{"connection refused", "unreachable", "Start the server; check its address and DNS.", "Failing, with the last good state, since "}},
		{"relay/nodes", []string{"connection refused"}},
		{"node-1/api", []string{"connection refused"}},
	} {
		b.run(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelector('[data-name="%s"] a').click()`, c.name)))
		for _, text := range append(c.texts, c.name) {
			b.until(fmt.Sprintf("document.querySelector('#panel').innerText.includes('%s')", text))
		}
	}
	b.run(chromedp.KeyEvent(kb.Escape))
	b.until("location.hash === '' && document.querySelector('#panel h2').innerText === 'node-1/api'")
	b.until("document.querySelector('#verdict').innerText.startsWith('3 of 4 copies are not well: ')")
	b.until("document.title.startsWith('(!) ')")
	require.Equal(t, "node-1/file", value[string](b, "document.querySelector('#copies').lastElementChild.dataset.name"), "the worst come first")
	b.picture("failing", "light")
	b.picture("failing", "dark")
	b.run(chromedp.EmulateViewport(phone, phoneHeight))
	b.picture("failing", "phone")
	b.picture("failing", "phone-dark")
	b.run(chromedp.EmulateViewport(desktop, desktopHeight))

	p.free()
	p.start()
	p.create("late")
	b.until(row("pods", "synced") + " && " + row("node-1/api", "synced") + " && " + row("relay/nodes", "synced"))
	b.until("!document.title.startsWith('(!) ') && document.querySelector('#tail').innerText.includes('default/late')")
	b.isQuiet()
}

// TestAPageThatStandsStillSaysSo: without its program a page does not pretend that all is well.
func TestAPageThatStandsStillSaysSo(t *testing.T) {
	p := startProgram(t)
	b := open(t, p.page, desktop, desktopHeight)
	b.until(row("pods", "synced"))
	p.endPage()
	b.until("document.getElementById('live').innerText.startsWith('not connected') && document.title.startsWith('(?) ')")
	require.Less(t, value[float64](b, "Number(getComputedStyle(document.getElementById('verdict')).opacity)"), 0.5)
}

// isQuiet: the console and the policy have no complaint, and no request left the host.
func (b *tab) isQuiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(b.t, b.complaints)
	require.Empty(b.t, b.foreign)
}

// picture compares nothing: with -update it writes what a person sees. The scheme is "light",
// "dark", "phone", which is light, or "phone-dark".
func (b *tab) picture(name, scheme string) {
	b.t.Helper()
	if !*update {
		return
	}
	colors := map[bool]string{true: "dark", false: "light"}[strings.HasSuffix(scheme, "dark")]
	b.scheme(colors)
	b.run(chromedp.Evaluate[chromedp.Void]("document.activeElement.blur()"))
	shot, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	require.NoError(b.t, err)
	picture := small(b.t, shot)
	require.Less(b.t, len(picture), maxPicture)
	file := filepath.Join("..", "..", "docs", "images", "status-"+name+"-"+scheme+".png")
	require.NoError(b.t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(b.t, os.WriteFile(file, picture, 0o644))
}

// small is a picture with its 256 most frequent colors.
func small(t *testing.T, shot []byte) []byte {
	t.Helper()
	full, err := png.Decode(bytes.NewReader(shot))
	require.NoError(t, err)
	uses := map[color.Color]int{}
	bounds := full.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			uses[full.At(x, y)]++
		}
	}
	palette := color.Palette(slices.SortedFunc(maps.Keys(uses), func(a, b color.Color) int { return uses[b] - uses[a] }))
	few := image.NewPaletted(bounds, palette[:min(len(palette), 256)])
	draw.Draw(few, bounds, full, bounds.Min, draw.Src)
	var out bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, few))
	return out.Bytes()
}

// scheme is "light" or "dark", as the system of a person says.
func (b *tab) scheme(colors string) {
	b.run(command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: colors}},
	}))
}

// TestEveryWidth: nothing is cut off or scrolled sideways, with a server that is away, on a phone
// and on a desk.
func TestEveryWidth(t *testing.T) {
	p := startProgram(t)
	b := open(t, p.page, desktop, desktopHeight)
	b.until(row("pods", "synced"))
	p.kill()
	b.until(row("pods", "failing"))
	p.label("dns", strings.Repeat("long", 15))
	for _, width := range []int64{320, phone, 768, 1024, desktop, 1920} {
		b.run(chromedp.EmulateViewport(width, 800))
		over := value[[]string](b, fmt.Sprintf(`[...document.querySelectorAll("body *")]
			.filter((e) => e.getBoundingClientRect().right > %d && !e.closest(".hidden, td")).map((e) => e.tagName + "." + e.className)`, width))
		require.Empty(t, over, width)
		require.LessOrEqual(t, value[int64](b, "document.documentElement.scrollWidth"), width)
		require.Empty(t, value[[]string](b, broken), width)
	}
	b.isQuiet()
}

// broken is the words that stand on two lines, as an expression.
const broken = `(() => {
	const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
	for (let node; node = walk.nextNode();) {
		if (!node.parentElement.checkVisibility() || node.parentElement.closest("script, .hidden")) continue;
		for (const word of node.data.matchAll(/[A-Za-z0-9]+/g)) {
			range.setStart(node, word.index);
			range.setEnd(node, word.index + word[0].length);
			if (new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1) found.push(word[0]);
		}
	}
	return found;
})()`

// TestLightAndDark: texts are told from their background in both schemes, by the contrast that WCAG
// asks for (4.5 to 1).
func TestLightAndDark(t *testing.T) {
	p := startProgram(t)
	b := open(t, p.page, desktop, desktopHeight)
	b.until(row("pods", "synced"))
	p.label("dns", "system")
	b.until("document.querySelector('#tail').innerText.includes('default/dns')")
	p.kill()
	b.until(row("pods", "failing"))
	b.run(chromedp.Evaluate[chromedp.Void]("location.hash = 'state=failing'")) // a chip is chosen
	b.until("document.querySelector('.chip[aria-current]') !== null")
	backgrounds := map[string]bool{}
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		backgrounds[value[string](b, "getComputedStyle(document.body).backgroundColor")] = true
		require.Empty(t, value[[]string](b, faint), scheme)
	}
	require.Len(t, backgrounds, 2)
}

// faint is the texts whose contrast is below 4.5, as an expression.
const faint = `(() => {
	const rgb = (text) => text.match(/[\d.]+/g).map(Number);
	const light = (text) => {
		const [r, g, b] = rgb(text).map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const behind = (e) => {
		for (; e; e = e.parentElement) {
			const color = getComputedStyle(e).backgroundColor;
			if (rgb(color)[3] !== 0) return color;
		}
		return "rgb(255, 255, 255)";
	};
	const texts = [...document.querySelectorAll("body *")].filter((e) =>
		[...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim()) && e.tagName !== "SCRIPT" && e.checkVisibility());
	if (texts.length < 30) return ["only " + texts.length + " texts"];
	return texts.map((e) => {
		const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => y - x);
		return [(a + 0.05) / (b + 0.05), e.tagName + ": " + e.innerText];
	}).filter(([ratio]) => ratio < 4.5).map(([ratio, text]) => ratio.toFixed(1) + " " + text);
})()`

// TestKeyboard: with the keyboard alone, the focus goes through the page in reading order, is seen
// wherever it is, stays where it is while the page changes, and presses a button.
func TestKeyboard(t *testing.T) {
	p := startProgram(t)
	b := open(t, p.page, desktop, desktopHeight)
	b.until(row("pods", "synced") + " && " + row("node-1/api", "synced") + " && " + row("node-1/file", "synced") + " && " + row("relay/nodes", "synced"))
	p.label("dns", "system")
	// the informer's and the source's
	b.until("document.querySelectorAll('#tail button').length === 2")
	tab := func(modifiers ...chromedp.KeyOption) string {
		b.run(chromedp.KeyEvent(kb.Tab, modifiers...))
		return b.focused()
	}
	var order []string
	for range 8 {
		order = append(order, tab())
	}
	require.Equal(t, []string{"INPUT ", "A 4 synced", "A node-1/api", "A node-1/file", "A pods", "A relay/nodes"}, order[:6], "the filter, the chip and the rows")
	require.True(t, strings.HasPrefix(order[6], "OL "), "the list of changes itself: %s", order)
	require.Equal(t, "BUTTON Difference", order[7])
	b.run(chromedp.KeyEvent(kb.Enter))
	b.until(`document.querySelector("#tail pre")?.innerText.includes('"tier": "system"')`)
	require.NotContains(t, value[string](b, `document.querySelector("#tail pre").innerText`), "image", "nothing but the difference")

	// to a row, and by arrows to the next ones
	tab(chromedp.KeyModifiers(chromedp.ModifierShift))
	require.Equal(t, "A relay/nodes", tab(chromedp.KeyModifiers(chromedp.ModifierShift)))
	b.run(chromedp.KeyEvent(kb.ArrowUp))
	require.Equal(t, "A pods", b.focused())
	b.run(chromedp.KeyEvent(kb.Enter))
	b.until("document.activeElement.tagName === 'H2' && document.activeElement.innerText === 'pods'")
	require.Equal(t, []string{"A synced", "A Close", "BUTTON Verify pods"}, []string{tab(), tab(), tab()}, "the panel")
	b.run(chromedp.KeyEvent(kb.Enter))
	b.until(`document.querySelector("#answer").innerText.startsWith("pods is as the server has it: 4 objects at version ")`)
	require.Equal(t, "BUTTON Verify pods", b.focused(), "the focus stays while the panel is replaced")
	b.run(chromedp.KeyEvent(kb.Escape))
	b.until("document.querySelector('#panel').innerText === ''")
	require.Equal(t, "A pods", b.focused(), "back at the row")
	b.isQuiet()
}

// focused is the element with the focus, which is seen and in sight.
func (b *tab) focused() string {
	b.t.Helper()
	name := value[string](b, "document.activeElement.tagName + ' ' + document.activeElement.textContent.trim().split('\\n')[0]")
	require.NotEqual(b.t, "none none", value[string](b, `[getComputedStyle(document.activeElement).outlineStyle,
		getComputedStyle(document.activeElement, "::after").outlineStyle].join(" ")`), name)
	require.True(b.t, value[bool](b, `(() => { const box = document.activeElement.getBoundingClientRect();
		return box.top >= 0 && box.bottom <= innerHeight && box.width > 0; })()`), "in sight: %s", name)
	return name
}
