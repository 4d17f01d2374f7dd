package apiserver

import (
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tributary-go/tributary/watchcache/internal/apierror"
)

// servePatch answers PATCH: a server-side apply, or JSON, merge and strategic merge patches.
func (e *resourceEndpoint[T]) servePatch(c call) error {
	patch, err := readBody(c)
	if err != nil {
		return err
	}
	kind := types.PatchType(bodyType(c))
	if kind == types.ApplyYAMLPatchType && c.target.Subresource == "" {
		return e.serveApply(c, patch)
	}
	patched, err := e.writer(c).Patch(c.target.Namespace, c.target.Name, kind, patch, c.target.Subresource)
	if err != nil {
		return err
	}
	return e.respond(c, http.StatusOK, patched)
}

// serveApply answers a server-side apply.
func (e *resourceEndpoint[T]) serveApply(c call, configuration []byte) error {
	manager, force, err := applyOptions(c)
	if err != nil {
		return err
	}
	applied, created, err := e.collection.As(manager).Apply(c.target.Namespace, c.target.Name, configuration, force)
	if err != nil {
		return err
	}
	code := http.StatusOK
	if created {
		code = http.StatusCreated
	}
	return e.respond(c, code, applied)
}

func applyOptions(c call) (manager string, force bool, err error) {
	if manager = c.query("fieldManager"); manager == "" {
		return "", false, apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("PatchOptions").GroupKind(), "",
			field.ErrorList{field.Required(field.NewPath("fieldManager"), "is required for apply patch")})
	}
	if text := c.query("force"); text != "" {
		if force, err = strconv.ParseBool(text); err != nil {
			return "", false, apierror.BadRequest("force: %q is neither true nor false", text)
		}
	}
	return manager, force, nil
}

// manager is the name of the client: its fieldManager, or the first word of its user agent.
func manager(c call) string {
	if name := c.query("fieldManager"); name != "" {
		return name
	}
	name, _, _ := strings.Cut(c.request.UserAgent(), "/")
	return name
}
