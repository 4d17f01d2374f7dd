package browser

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheRecordingOfTheStory: docs/images/story.svg shows its lines one after the other, within its
// frame, in the colors of the system.
func TestTheRecordingOfTheStory(t *testing.T) {
	web := httptest.NewServer(http.FileServer(http.Dir("../../docs/images")))
	defer web.Close()
	b := openTab(t, web.URL+"/story.svg", desktop, 1000, nil)
	const seen = "[...document.querySelectorAll('text')].filter((line) => getComputedStyle(line).opacity === '1').length"
	lines := value[int](b, "document.querySelectorAll('text').length")
	require.Greater(t, lines, 30)
	require.Less(t, value[int](b, seen), lines, "it has just begun")
	b.until(seen + " === document.querySelectorAll('text').length")
	require.True(t, value[bool](b, `(() => { const frame = document.querySelector("rect").getBBox();
		return [...document.querySelectorAll("text")].map((line) => line.getBBox())
			.every((box) => box.x > frame.x && box.x + box.width < frame.x + frame.width && box.y + box.height < frame.height); })()`))
	backgrounds := map[string]bool{}
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		backgrounds[value[string](b, "getComputedStyle(document.querySelector('rect')).fill")] = true
		require.Empty(t, value[[]string](b, faintLines), scheme)
	}
	require.Len(t, backgrounds, 2)
}

// faintLines is the texts of a drawing whose contrast is below 4.5, as an expression.
const faintLines = `(() => {
	const light = (text) => {
		const [r, g, b] = text.match(/[\d.]+/g).map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const behind = light(getComputedStyle(document.querySelector("rect")).fill);
	return [...document.querySelectorAll("text, tspan")].filter((e) => {
		const [a, b] = [light(getComputedStyle(e).fill), behind].sort((x, y) => y - x);
		return (a + 0.05) / (b + 0.05) < 4.5;
	}).map((e) => e.textContent);
})()`
