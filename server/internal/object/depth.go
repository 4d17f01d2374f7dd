package object

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/server/internal/apierror"
)

const (
	// maxDepth bounds how deep a document is nested. A definition with the schema of a pod has some
	// 40 levels. encoding/json, and so kube-apiserver, takes 10,000, and its CBOR decoder 64.
	maxDepth = 256
	// maxWeight bounds the sum of the depths of all bytes. A merge, and the fields of a manager,
	// cost that much: each level reads its content again.
	maxWeight = 32 << 20
)

// CheckDepth refuses a JSON document that is nested so deeply that it would take seconds to write:
// 400, or 413 if it is large as well. It does not check the form of the document.
func CheckDepth(doc []byte) error {
	depth, weight, inString := 0, 0, false
	for i := 0; i < len(doc); i++ {
		weight += depth
		switch b := doc[i]; {
		case inString:
			switch b {
			case '\\':
				i++
			case '"':
				inString = false
			}
		case b == '"':
			inString = true
		case b == '{' || b == '[':
			if depth++; depth > maxDepth {
				return apierror.BadRequest("the document has more than %d levels of nesting", maxDepth)
			}
		case b == '}' || b == ']':
			depth--
		}
	}
	if weight > maxWeight {
		return apierror.Refused(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge,
			"the document is too large for how deeply it is nested: send it in parts, or flatter")
	}
	return nil
}
