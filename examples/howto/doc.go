// Package howto has the code of the pages in docs/howto: a file for a page, to the letter.
package howto
