package correctness

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/apis/example"
)

func (s *Store) toPod(p *example.Pod) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: p.Name, Labels: p.Labels, Annotations: p.Annotations, ResourceVersion: p.ResourceVersion,
		},
		Spec: corev1.PodSpec{NodeName: p.Spec.NodeName, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
}

func (s *Store) fromPod(p *corev1.Pod) *example.Pod {
	uid := p.UID
	if asked, ok := s.uids[uid]; ok {
		uid = asked
	}
	version := s.toVirtual(p.ResourceVersion)
	var mark *metav1.Time
	if s.versions == nil {
		mark = p.DeletionTimestamp
	} else if isMark(p) {
		version = s.versions.ofKey("/pods/"+p.Namespace+"/"+p.Name, p.ResourceVersion)
	}
	return &example.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: p.Name, Labels: p.Labels, Annotations: p.Annotations, UID: uid,
			ResourceVersion: version, DeletionTimestamp: mark,
		},
		Spec: example.PodSpec{NodeName: p.Spec.NodeName},
	}
}

// isMark is for the write that a pod's deletion begins with, which the model does not know: it
// counts as none, and the object has the version of the write before.
func isMark(p *corev1.Pod) bool { return p.DeletionTimestamp != nil }

// written notes a write of this store, and the UID that was asked for.
func (s *Store) written(p *corev1.Pod, asked types.UID) {
	if s.versions == nil {
		return
	}
	version, err := strconv.ParseUint(p.ResourceVersion, 10, 64)
	if err != nil {
		panic(err)
	}
	s.versions.Add(version, "/pods/"+p.Namespace+"/"+p.Name)
	if asked != "" {
		s.uids[p.UID] = asked
	}
}

func (s *Store) toUID(asked types.UID) types.UID {
	for real, a := range s.uids {
		if a == asked {
			return real
		}
	}
	return asked
}

func (s *Store) toVirtual(version string) string {
	if s.versions == nil {
		return version
	}
	return s.versions.virtual(version)
}

func (s *Store) toReal(version string) string {
	v, err := strconv.ParseUint(version, 10, 64)
	if s.versions == nil || err != nil || v == 0 {
		return version
	}
	return strconv.FormatUint(s.versions.Real(v), 10)
}

func (s *Store) realVersion(v int64) int64 {
	if s.versions == nil || v <= 0 {
		return v
	}
	return int64(s.versions.Real(uint64(v)))
}

func (s *Store) virtualVersion(v int64) int64 {
	if s.versions == nil || v <= 0 {
		return v
	}
	return int64(s.versions.Virtual(uint64(v)))
}

// retoken is a continue token with another version; what is none stays as it is.
func retoken(text string, version func(int64) int64) string {
	var token struct {
		APIVersion string `json:"v"`
		Version    int64  `json:"rv"`
		Start      string `json:"start"`
	}
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if text == "" || err != nil || json.Unmarshal(decoded, &token) != nil {
		return text
	}
	token.Version = version(token.Version)
	// Servers accept a start with and without the slash, and write either.
	token.Start = strings.TrimPrefix(token.Start, "/")
	encoded, _ := json.Marshal(token)
	return base64.RawURLEncoding.EncodeToString(encoded)
}
