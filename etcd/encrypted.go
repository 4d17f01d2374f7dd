package etcd

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tributary-go/tributary/listwatch"
)

const encrypted = "k8s:enc:" // before every value that kube-apiserver has encrypted

// encryptedError is a value that cannot be read for want of its key.
type encryptedError struct {
	object string // its store key, once that is known
	text   string
}

func (e *encryptedError) Error() string { return e.text }

// encryptedBy names the provider and its key, which stand before the encrypted bytes in the clear:
// k8s:enc:PROVIDER:VERSION:KEY:.
func encryptedBy(value []byte) error {
	return &encryptedError{text: fmt.Sprintf("the value is encrypted at rest (%s), and no key was given: "+
		"give the EncryptionConfiguration of its API server, or read this resource through that", providerOf(value))}
}

// undecrypted is a value that the given keys do not open.
func undecrypted(value []byte, err error) error {
	return &encryptedError{text: fmt.Sprintf("the value (%s) cannot be decrypted by the given EncryptionConfiguration: %v",
		providerOf(value), err)}
}

func providerOf(value []byte) string {
	const most = 100 // bytes of a name that is worth telling
	rest, locked := strings.CutPrefix(string(value[:min(len(value), len(encrypted)+3*most)]), encrypted)
	if !locked {
		return "not encrypted"
	}
	provider, key := "unknown", "unknown"
	if parts := strings.SplitN(rest, ":", 4); len(parts) == 4 && len(parts[0]) <= most && len(parts[2]) <= most {
		provider, key = parts[0], parts[2]
	}
	return fmt.Sprintf("provider %q, key %q", provider, key)
}

// lockedBy is the encrypted value behind an error of a value; nil if the error is another.
func lockedBy(err error) *encryptedError {
	var locked *encryptedError
	var one *listwatch.DecodeError
	if !errors.As(err, &locked) {
		return nil
	}
	if errors.As(err, &one) {
		return &encryptedError{object: one.Object, text: locked.text}
	}
	return locked
}
