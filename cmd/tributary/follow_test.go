package main

import (
	"encoding/json"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/tributary-go/tributary/server/crd"
)

var (
	definitionsV1 = apiextensionsv1.SchemeGroupVersion.WithResource(definitionsName)
	crontabsV1    = schema.GroupVersionResource{Group: "stable.example.com", Version: "v1", Resource: "crontabs"}
	crontabsV2    = crontabsV1.GroupResource().WithVersion("v2")
)

func (p *program) documents(of schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	p.t.Helper()
	client, err := dynamic.NewForConfig(p.config)
	require.NoError(p.t, err)
	return client.Resource(of)
}

// crontabs is the definition of testdata/crontabs.yaml.
func crontabs(t *testing.T) *definition {
	t.Helper()
	all, err := crd.Load(filepath.Join("testdata", "crontabs.yaml"))
	require.NoError(t, err)
	return all[0]
}

func (p *program) define(d *definition) {
	p.t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
	require.NoError(p.t, err)
	obj := &unstructured.Unstructured{Object: content}
	obj.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	_, err = p.documents(definitionsV1).Create(p.t.Context(), obj, metav1.CreateOptions{})
	require.NoError(p.t, err)
	p.established(d.Name)
}

// definition is what is stored of a definition.
func (p *program) definition(name string) *definition {
	p.t.Helper()
	obj, err := p.documents(definitionsV1).Get(p.t.Context(), name, metav1.GetOptions{})
	require.NoError(p.t, err)
	d := &definition{}
	require.NoError(p.t, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, d))
	return d
}

func (p *program) established(name string) {
	p.t.Helper()
	p.until(func() bool {
		d := p.definition(name)
		return apihelpers.IsCRDConditionTrue(d, apiextensionsv1.Established) && apihelpers.IsCRDConditionTrue(d, apiextensionsv1.NamesAccepted)
	})
}

func (p *program) until(holds func() bool) {
	p.t.Helper()
	require.Eventually(p.t, holds, patience, 5*time.Millisecond)
}

// patch changes a definition.
func (p *program) patch(name string, patch any) {
	p.t.Helper()
	text, err := json.Marshal(patch)
	require.NoError(p.t, err)
	_, err = p.documents(definitionsV1).Patch(p.t.Context(), name, types.MergePatchType, text, metav1.PatchOptions{})
	require.NoError(p.t, err)
}

func crontab(name, version string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "stable.example.com/" + version, "kind": "CronTab", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"schedule": "daily", "replicas": int64(3)},
	}}
}

// get is an object as it is served; nil if the resource or the object is not found.
func (p *program) get(of schema.GroupVersionResource, name string) *unstructured.Unstructured {
	p.t.Helper()
	obj, err := p.documents(of).Namespace("default").Get(p.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(p.t, err)
	return obj
}

// TestDefinitionsWhileServing: a definition is served at once, by both servers of an etcd; its
// changes are followed, and the objects that were stored before are served as it says then; its end
// deletes them; and kill -9 loses none of it.
func TestDefinitionsWhileServing(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	one := launch(t, "--data", data)
	two := launch(t, "--etcd", one.etcd)
	d := crontabs(t)
	one.define(d)
	namespaced := func(p *program, of schema.GroupVersionResource) dynamic.ResourceInterface {
		return p.documents(of).Namespace("default")
	}
	one.until(func() bool { // two may have been the first to serve it, and to say so
		_, err := namespaced(one, crontabsV1).List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
	created, err := namespaced(one, crontabsV1).Create(t.Context(), crontab("a", "v1"), metav1.CreateOptions{})
	require.NoError(t, err)
	two.until(func() bool { return two.get(crontabsV1, "a") != nil })
	require.Equal(t, created, two.get(crontabsV1, "a"))
	require.Equal(t, []string{"v1"}, one.definition(d.Name).Status.StoredVersions)

	stream, err := namespaced(two, crontabsV1).Watch(t.Context(), metav1.ListOptions{ResourceVersion: created.GetResourceVersion()})
	require.NoError(t, err)
	t.Cleanup(stream.Stop)

	// A second version comes, which is stored from now on; the first one has a new default.
	second := d.Spec.Versions[0].DeepCopy()
	second.Name, second.SelectableFields = "v2", nil
	properties := d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
	properties["zone"] = apiextensionsv1.JSONSchemaProps{Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"UTC"`)}}
	d.Spec.Versions[0].Storage = false
	versions := append(d.Spec.Versions, *second)
	one.patch(d.Name, map[string]any{"spec": map[string]any{"versions": versions}})
	for _, p := range []*program{one, two} {
		p.until(func() bool { return p.get(crontabsV2, "a") != nil })
		zone, _, _ := unstructured.NestedString(p.get(crontabsV1, "a").Object, "spec", "zone")
		require.Equal(t, "UTC", zone, "the default of a later definition")
		require.NotContains(t, p.get(crontabsV2, "a").Object["spec"], "zone")
		require.Equal(t, created.GetUID(), p.get(crontabsV2, "a").GetUID())
	}
	_, open := <-stream.ResultChan()
	require.False(t, open, "a watch of the old definition ends")
	require.Equal(t, []string{"v1", "v2"}, one.definition(d.Name).Status.StoredVersions)
	_, err = namespaced(two, crontabsV1).Create(t.Context(), crontab("b", "v1"), metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, "stable.example.com/v2", one.get(crontabsV2, "b").GetAPIVersion())
	group, err := one.client().Discovery().ServerResourcesForGroupVersion("stable.example.com/v2")
	require.NoError(t, err)
	require.NotEmpty(t, group.APIResources)

	// The first version goes.
	versions[0].Served = false
	one.patch(d.Name, map[string]any{"spec": map[string]any{"versions": versions}})
	two.until(func() bool { return two.get(crontabsV1, "a") == nil })
	require.NotNil(t, two.get(crontabsV2, "a"))

	one.kill()
	two.kill()
	one = launch(t, "--data", data)
	two = launch(t, "--etcd", one.etcd)
	require.Nil(t, one.get(crontabsV1, "a"))
	require.NotNil(t, one.get(crontabsV2, "a"))
	require.NotNil(t, two.get(crontabsV2, "b"))

	// The end: objects go first, one of them is held, and nothing may be created.
	_, err = namespaced(one, crontabsV2).Patch(t.Context(), "b", types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/held"]}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	list, err := namespaced(two, crontabsV2).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	stream, err = namespaced(two, crontabsV2).Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	require.NoError(t, err)
	t.Cleanup(stream.Stop)
	require.NoError(t, one.documents(definitionsV1).Delete(t.Context(), d.Name, metav1.DeleteOptions{}))
	told := map[string]bool{}
	for !told["DELETED a"] || !told["MODIFIED b"] {
		e := <-stream.ResultChan()
		told[string(e.Type)+" "+e.Object.(metav1.Object).GetName()] = true
	}
	_, err = namespaced(one, crontabsV2).Create(t.Context(), crontab("c", "v2"), metav1.CreateOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	ending := one.definition(d.Name)
	require.Equal(t, []string{apiextensionsv1.CustomResourceCleanupFinalizer}, ending.Finalizers)
	require.Equal(t, "InstanceDeletionInProgress", apihelpers.FindCRDCondition(ending, apiextensionsv1.Terminating).Reason)
	one.kill()
	two.kill()
	one = launch(t, "--data", data)
	_, err = namespaced(one, crontabsV2).Patch(t.Context(), "b", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	one.until(func() bool {
		_, err := one.documents(definitionsV1).Get(t.Context(), d.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	one.until(func() bool { return one.get(crontabsV2, "b") == nil })
	_, err = one.client().Discovery().ServerResourcesForGroupVersion("stable.example.com/v2")
	require.True(t, apierrors.IsNotFound(err), "%v", err)

	one.define(crontabs(t))
	list, err = namespaced(one, crontabsV1).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, list.Items, "the next definition of the name begins without objects")
}

// TestWatchersOfADefinitionThatEnds: they are told of every deletion, and their watch ends.
func TestWatchersOfADefinitionThatEnds(t *testing.T) {
	p := launch(t, "--data", filepath.Join(t.TempDir(), "data"))
	d := crontabs(t)
	p.define(d)
	created, err := p.documents(crontabsV1).Namespace("default").Create(t.Context(), crontab("a", "v1"), metav1.CreateOptions{})
	require.NoError(t, err)
	stream, err := p.documents(crontabsV1).Watch(t.Context(), metav1.ListOptions{ResourceVersion: created.GetResourceVersion()})
	require.NoError(t, err)
	t.Cleanup(stream.Stop)
	require.NoError(t, p.documents(definitionsV1).Delete(t.Context(), d.Name, metav1.DeleteOptions{}))
	var told []watch.EventType
	for e := range stream.ResultChan() {
		told = append(told, e.Type)
	}
	require.Equal(t, []watch.EventType{watch.Deleted}, told)
}

// TestNamesThatAreInUse: of two definitions with one kind the first one is served, and the other
// one once that is gone.
func TestNamesThatAreInUse(t *testing.T) {
	p := launch(t, "--data", filepath.Join(t.TempDir(), "data"))
	first := crontabs(t)
	p.define(first)
	second := crontabs(t)
	second.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "tables", Singular: "table", Kind: first.Spec.Names.Kind}
	second.Name = "tables.stable.example.com"
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(second)
	require.NoError(t, err)
	_, err = p.documents(definitionsV1).Create(t.Context(), &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
	require.NoError(t, err)
	p.until(func() bool {
		refused := apihelpers.FindCRDCondition(p.definition(second.Name), apiextensionsv1.NamesAccepted)
		return refused != nil && refused.Status == apiextensionsv1.ConditionFalse
	})
	d := p.definition(second.Name)
	require.Equal(t, `"CronTabList" is already in use`, apihelpers.FindCRDCondition(d, apiextensionsv1.NamesAccepted).Message)
	require.Equal(t, "NotAccepted", apihelpers.FindCRDCondition(d, apiextensionsv1.Established).Reason)
	require.NoError(t, p.documents(definitionsV1).Delete(t.Context(), first.Name, metav1.DeleteOptions{}))
	p.established(second.Name)
}

// TestFollowsNoneButNamed: --resource may name the definitions that are followed.
func TestFollowsNoneButNamed(t *testing.T) {
	p := launch(t, "--data", filepath.Join(t.TempDir(), "data"))
	p.define(crontabs(t))
	named := launch(t, "--etcd", p.etcd, "--resource", "crontabs.stable.example.com")
	_, err := named.documents(crontabsV1).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	_, err = named.documents(definitionsV1).List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	other := launch(t, "--etcd", p.etcd, "--resource", "pods")
	_, err = other.documents(crontabsV1).List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	require.Equal(t, exitFailed, run(t.Context(), []string{"serve", "--etcd", p.etcd, "--resource", "unknown.example.com"}, io.Discard, io.Discard))
}
