package stream

import (
	"context"
	"fmt"
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/internal/causes"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// Pages yields a LIST and the pages that follow it, all of one resource version, which it has set
// once it ends.
func Pages[T store.Object](ctx context.Context, source listwatch.ListerWatcher[T], options metav1.ListOptions, version *string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for count := (pageCount{}); ; {
			list, items := source.List(ctx, options), 0
			for obj, err := range list.Items {
				items++
				if !yield(obj, Cause(ctx, err)) {
					return
				}
			}
			meta := list.Meta()
			*version = meta.ResourceVersion
			if meta.Continue == "" {
				return
			}
			if err := count.next(meta.Continue, items); err != nil {
				var none T
				yield(none, err)
				return
			}
			options.Continue = meta.Continue
			options.ResourceVersion, options.ResourceVersionMatch = "", "" // the token has them
		}
	}
}

// Bounds of one LIST in pages: a server, or a proxy that drops the continue parameter, may answer
// pages for ever.
const (
	// In a row; 500,000 objects, if a server filters its pages of 500 afterwards.
	maxEmptyPages = 1_000
	maxPages      = 100_000 // of one list; 50 million objects in pages of 500
)

// pageCount follows the continue tokens of one list. Of the tokens it keeps one, and keeps another
// each time that the number of pages has doubled: so a cycle of any length is found within three
// times the pages before its first repetition.
type pageCount struct {
	pages, empty int
	kept         string
	keptAt       int
}

// next takes in a page and the token that follows it. Its error ends the list.
func (p *pageCount) next(token string, items int) error {
	p.pages++
	p.empty++
	if items > 0 {
		p.empty = 0
	}
	switch {
	case token == p.kept:
		return endless("the continue token of page %d came again after page %d", p.keptAt, p.pages)
	case p.empty == maxEmptyPages:
		return endless("%d pages in a row are empty and have a continue token", p.empty)
	case p.pages == maxPages:
		return endless("%d pages, and another continue token", p.pages)
	}
	if p.pages >= 2*p.keptAt {
		p.kept, p.keptAt = token, p.pages
	}
	return nil
}

// endless is the error of a list without an end.
func endless(sign string, values ...any) error {
	return &causes.WrongAnswer{Err: fmt.Errorf("the list has no end: "+sign+
		": see whether the server, or a proxy before it, obeys the parameter continue", values...)}
}
