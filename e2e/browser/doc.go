// Package browser looks at the status page as a person does: with headless Chromium, driven by
// chromedp.
//
//	go test -C e2e ./browser
//	go test -C e2e ./browser -update # makes the pictures in docs/images anew
//
// Without a Chromium the tests are skipped. Debian's package is called chromium.
package browser
