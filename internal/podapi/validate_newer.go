package podapi

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// newerUser checks the owner of a projected file. The path of the fault may lack the file's index.
func (v *validator) newerUser(file, at *field.Path) {
	if user, ok := newerAt[int64](v, file.Child("user")); ok {
		v.userID(&user, at.Child("user"))
	}
}

func (v *validator) newerDefaultUser(at *field.Path) {
	if user, ok := newerAt[int64](v, at.Child("defaultUser")); ok {
		v.userID(&user, at.Child("defaultUser"))
	}
}

// generated checks the fields whose rules 1.38 has from the +k8s: tags of k8s.io/api. Of those,
// 1.37 checks the type, and one rule that is written by hand.
func (v *validator) generated() {
	v.evictionResponders(specPath.Child("evictionResponders"))
	status := field.NewPath("status")
	v.volumeHealth(status.Child("volumeHealth"))
	v.claimStatuses(status.Child("nodeAllocatableResourceClaimStatuses"))
}

// listOf checks the keys of a list that is a map, and calls check for each item from 1.38 on.
func listOf[T any](v *validator, list []T, all *field.Path, key func(T) string, check func(T, *field.Path)) {
	if v.release < R138 {
		return
	}
	seen := sets.New[string]()
	for i, item := range list {
		if seen.Has(key(item)) {
			v.duplicate(all.Index(i), "")
		}
		seen.Insert(key(item))
		check(item, all.Index(i))
	}
}

func (v *validator) evictionResponders(all *field.Path) {
	const maxResponders, reserved, maxPriority = 10, 1000, 100_000
	type responder struct {
		Name     string `json:"name"`
		Priority *int32 `json:"priority"`
	}
	responders, _ := newerAt[[]responder](v, all)
	// The build may have no type for the group.
	if group := specPath.Child("schedulingGroup"); len(responders) > 0 && v.newer[group.String()] != nil {
		v.forbidden(group, "excludes evictionResponders")
	}
	if len(responders) > maxResponders && v.release >= R138 {
		v.tooMany(all, fmt.Sprintf("may have %d responders", maxResponders))
		return
	}
	listOf(v, responders, all, func(r responder) string { return r.Name }, func(r responder, at *field.Path) {
		if name := at.Child("name"); v.notEmpty(name, r.Name) {
			domain, _, _ := strings.Cut(r.Name, "/")
			switch of := func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) }; {
			case of("k8s.io"), of("kubernetes.io"):
				v.invalid(name, "is in a domain of Kubernetes")
			case !strings.Contains(r.Name, "/"):
				v.invalid(name, "must have a domain, as in example.com/name")
			default:
				v.messages(name, utilvalidation.IsQualifiedName(r.Name))
			}
		}
		switch priority := at.Child("priority"); {
		case r.Priority == nil:
			v.required(priority, "")
		case *r.Priority < reserved || *r.Priority > maxPriority:
			v.invalid(priority, fmt.Sprintf("must be between %d and %d", reserved, maxPriority))
		}
	})
}

func (v *validator) volumeHealth(all *field.Path) {
	const maxConditions, maxReason, maxMessage = 16, 256, 1024
	type condition struct {
		Status  string `json:"status"`
		Reason  string `json:"reason"`
		Message string `json:"message"`
	}
	type health struct {
		Name       string      `json:"name"`
		Conditions []condition `json:"healthConditions"`
	}
	volumes, _ := newerAt[[]health](v, all)
	listOf(v, volumes, all, func(h health) string { return h.Name }, func(h health, at *field.Path) {
		v.notEmpty(at.Child("name"), h.Name)
		conditions := at.Child("healthConditions")
		if len(h.Conditions) > maxConditions {
			v.tooMany(conditions, fmt.Sprintf("may have %d conditions", maxConditions))
			return
		}
		listOf(v, h.Conditions, conditions, func(c condition) string { return c.Status + "/" + c.Reason }, func(c condition, at *field.Path) {
			setOneOf(&v.faults, at.Child("status"), c.Status, "Inaccessible", "DataLoss", "Degraded")
			if v.notEmpty(at.Child("reason"), c.Reason) && len(c.Reason) > maxReason {
				v.tooLong(at.Child("reason"), fmt.Sprintf("may have %d bytes", maxReason))
			}
			if len(c.Message) > maxMessage {
				v.tooLong(at.Child("message"), fmt.Sprintf("may have %d bytes", maxMessage))
			}
		})
	})
}

func (v *validator) claimStatuses(all *field.Path) {
	type amount struct {
		Name         string             `json:"name"`
		Quantity     *resource.Quantity `json:"quantity"`
		PerPod       *resource.Quantity `json:"perPod"`
		PerContainer *resource.Quantity `json:"perContainer"`
	}
	type claim struct {
		Name       string   `json:"resourceClaimName"`
		Containers []string `json:"containers"`
		Mapping    []amount `json:"mapping"`
		Overhead   []amount `json:"overhead"`
	}
	nameOf := func(a amount) string { return a.Name }
	claims, _ := newerAt[[]claim](v, all)
	listOf(v, claims, all, func(c claim) string { return c.Name }, func(c claim, at *field.Path) {
		v.notEmpty(at.Child("resourceClaimName"), c.Name)
		listOf(v, c.Containers, at.Child("containers"), func(name string) string { return name }, func(string, *field.Path) {})
		listOf(v, c.Mapping, at.Child("mapping"), nameOf, func(a amount, at *field.Path) {
			v.notEmpty(at.Child("name"), a.Name)
			if a.Quantity == nil {
				v.required(at.Child("quantity"), "")
			}
		})
		listOf(v, c.Overhead, at.Child("overhead"), nameOf, func(a amount, at *field.Path) { v.notEmpty(at.Child("name"), a.Name) })
	})
}

// seccompOCI checks a profile from a registry. Its type needs the gate SecurityProfileOCI, which is
// off, so none is accepted.
func (v *validator) seccompOCI(kind corev1.SeccompProfileType, at *field.Path) {
	type base struct {
		Type             string  `json:"type"`
		LocalhostProfile *string `json:"localhostProfile"`
	}
	type oci struct {
		Ref  string `json:"ref"`
		Base *base  `json:"baseProfile"`
	}
	profile, ok := newerAt[oci](v, at)
	if !ok {
		return
	}
	if kind != "OCI" {
		v.invalid(at, "is for type OCI")
	}
	if tag, digest, ok := parseImage(profile.Ref); v.notEmpty(at.Child("ref"), profile.Ref) && (!ok || tag != "" || digest == "") {
		v.invalid(at.Child("ref"), "must have a digest and no tag")
	}
	if profile.Base == nil {
		return
	}
	at = at.Child("baseProfile")
	setOneOf(&v.faults, at.Child("type"), profile.Base.Type, "RuntimeDefault", "Localhost")
	switch local, at := profile.Base.LocalhostProfile, at.Child("localhostProfile"); {
	case local != nil && profile.Base.Type != "Localhost":
		v.invalid(at, "is for type Localhost")
	case local != nil && v.notEmpty(at, *local):
		v.relativePath(*local, at)
	case local == nil && profile.Base.Type == "Localhost":
		v.required(at, "type Localhost needs it")
	}
}
