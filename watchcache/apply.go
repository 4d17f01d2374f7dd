package watchcache

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// serveApply answers a server-side apply (KEP-555): the object is created, or gets the fields that are applied and loses
// those that its manager applied before and no longer does. See [ownership] for what is simpler than in the API server.
func (e *resourceEndpoint[T]) serveApply(c call, patch []byte) error {
	manager, force, err := applyOptions(c)
	if err != nil {
		return err
	}
	applied, err := e.readApplied(c, patch)
	if err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		stored, err := e.collection.Get(c.target.Namespace, c.target.Name)
		code := http.StatusOK
		if apierrors.IsNotFound(err) && applied.GetUID() != "" {
			return e.collection.conflict(c.target.Name, fmt.Errorf("the configuration is for the object of UID %s, and there is none",
				applied.GetUID()))
		}
		if apierrors.IsNotFound(err) {
			stored, code, err = newObject[T](), http.StatusCreated, nil
		}
		if err != nil {
			return err
		}
		obj, err := e.collection.ownership.apply(stored, applied.DeepCopy(), manager, force)
		if err != nil {
			return err
		}
		if err := e.place(c, obj); err != nil {
			return err
		}
		write := e.collection.put
		if code == http.StatusCreated {
			write = e.collection.Create
		}
		written, err := write(obj)
		// A version of the configuration's own is a precondition: its conflict is final.
		again := apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) && applied.GetResourceVersion() == ""
		if err != nil && (!again || attempt == patchAttempts) {
			return err
		}
		if err == nil {
			return e.respond(c, code, written)
		}
	}
}

func applyOptions(c call) (manager string, force bool, err error) {
	if manager = c.query("fieldManager"); manager == "" {
		return "", false, apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("PatchOptions").GroupKind(), "",
			field.ErrorList{field.Required(field.NewPath("fieldManager"), "is required for apply patch")})
	}
	if text := c.query("force"); text != "" {
		if force, err = strconv.ParseBool(text); err != nil {
			return "", false, badRequest("force: %q is neither true nor false", text)
		}
	}
	return manager, force, nil
}

// readApplied reads the configuration, in YAML or JSON, for the object on the URL.
func (e *resourceEndpoint[T]) readApplied(c call, patch []byte) (*unstructured.Unstructured, error) {
	doc, err := yaml.YAMLToJSON(patch)
	content := map[string]any{}
	if err == nil {
		err = utiljson.Unmarshal(doc, &content)
	}
	if err != nil {
		return nil, badRequest("the applied configuration is not a YAML or JSON object") // the error quotes it
	}
	applied := &unstructured.Unstructured{Object: content}
	if applied.GetName() == "" {
		applied.SetName(c.target.Name)
	}
	if applied.GetName() != c.target.Name {
		return nil, badRequest("the name of the object (%s) does not match the name on the URL (%s)", applied.GetName(), c.target.Name)
	}
	delete(content, status.key) // an update of the object leaves it alone
	return applied, nil
}

// manager is who a client says that it is: its fieldManager, or the first word of its user agent.
func manager(c call) string {
	if name := c.query("fieldManager"); name != "" {
		return name
	}
	if name, _, _ := strings.Cut(c.request.UserAgent(), "/"); name != "" {
		return name
	}
	return unknownManager
}
