package crd_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/crd"
)

// loaded is the definition of testdata/shops.yaml, with its stored version alone.
func loaded(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	all, err := crd.Load(filepath.Join("testdata", "shops.yaml"))
	require.NoError(t, err)
	apiextensionsv1.SetDefaults_CustomResourceDefinition(all[0])
	all[0].Spec.Versions = all[0].Spec.Versions[1:]
	return all[0]
}

// TestDefinitions: definitions are completed, checked and kept until their end by the API server's
// rules.
func TestDefinitions(t *testing.T) {
	server, err := apiserver.NewServer()
	require.NoError(t, err)
	stored := apiserver.Serve(server, crd.Definitions())
	listener := httptest.NewServer(server)
	t.Cleanup(func() { server.Close(); listener.Close() })
	url := listener.URL + "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	send := func(method, url string, d *apiextensionsv1.CustomResourceDefinition) answer {
		document, err := json.Marshal(d)
		require.NoError(t, err)
		return request(t, method, url, "application/json", string(document))
	}
	d := loaded(t)
	d.Spec.Names.Singular, d.Status.StoredVersions = "", []string{"another"}
	require.Equal(t, http.StatusCreated, send(http.MethodPost, url, d).code)
	created, err := stored.Get("", d.Name)
	require.NoError(t, err)
	require.Equal(t, "shop", created.Spec.Names.Singular)
	require.Equal(t, []string{d.Spec.Versions[0].Name}, created.Status.StoredVersions, "the status is the server's")

	established := crd.Accept(created, nil)
	crd.SetCondition(established, apiextensionsv1.Established, true, "InitialNamesAccepted", "")
	created, err = stored.UpdateStatus(established)
	require.NoError(t, err)
	changed := created.DeepCopy()
	changed.Spec.Scope = apiextensionsv1.ClusterScoped
	changed.Spec.Names.Kind = "Other"
	got := send(http.MethodPut, url+"/"+d.Name, changed)
	require.Contains(t, got.causes(t), "spec.scope")
	changed = created.DeepCopy()
	changed.ResourceVersion = ""
	require.Equal(t, http.StatusUnprocessableEntity, send(http.MethodPut, url+"/"+d.Name, changed).code, "an update names its version")

	changed = created.DeepCopy()
	next := changed.Spec.Versions[0].DeepCopy()
	next.Name, next.Storage, changed.Spec.Versions[0].Storage = "v9", true, false
	changed.Spec.Versions = append(changed.Spec.Versions, *next)
	require.Equal(t, http.StatusOK, send(http.MethodPut, url+"/"+d.Name, changed).code)
	changed, err = stored.Get("", d.Name)
	require.NoError(t, err)
	require.Equal(t, []string{created.Spec.Versions[0].Name, "v9"}, changed.Status.StoredVersions)
	require.EqualValues(t, 2, changed.Generation)

	require.Equal(t, http.StatusOK, request(t, http.MethodDelete, url+"/"+d.Name, "application/json", "").code)
	ending, err := stored.Get("", d.Name)
	require.NoError(t, err)
	require.NotNil(t, ending.DeletionTimestamp)
	require.Equal(t, []string{apiextensionsv1.CustomResourceCleanupFinalizer}, ending.Finalizers)
	require.Equal(t, "InstanceDeletionPending", apihelpers.FindCRDCondition(ending, apiextensionsv1.Terminating).Reason)
	require.EqualValues(t, 2, ending.Generation, "its end is no change of what is wanted")
	ending = ending.DeepCopy()
	ending.Finalizers = nil
	_, err = stored.UpdateStatus(ending)
	require.NoError(t, err)
	require.Empty(t, stored.Snapshot().Len())
}

// TestAccept: names are given to the definition that asks first.
func TestAccept(t *testing.T) {
	first := crd.Accept(loaded(t), nil)
	require.True(t, apihelpers.IsCRDConditionTrue(first, apiextensionsv1.NamesAccepted))
	require.Equal(t, first.Spec.Names, first.Status.AcceptedNames)
	require.Equal(t, first, crd.Accept(first, []*apiextensionsv1.CustomResourceDefinition{first}), "nothing to do")

	names := func(change func(*apiextensionsv1.CustomResourceDefinition)) *apiextensionsv1.CustomResourceDefinition {
		d := loaded(t)
		d.Name = "others.example.com"
		d.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "others", Singular: "other", Kind: "Other", ListKind: "OtherList"}
		change(d)
		return crd.Accept(d, []*apiextensionsv1.CustomResourceDefinition{first})
	}
	for _, test := range []struct {
		change         func(*apiextensionsv1.CustomResourceDefinition)
		reason, refuse string
	}{
		{func(*apiextensionsv1.CustomResourceDefinition) {}, "NoConflicts", "no conflicts found"},
		{func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Names.Plural = "shops" }, "PluralConflict", `"shops" is already in use`},
		{func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Names.Singular = "shop" }, "SingularConflict", `"shop" is already in use`},
		{func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Names.ShortNames = []string{"ok", "shop", "shops"}
		}, "ShortNamesConflict",
			`["shop" is already in use, "shops" is already in use]`},
		{func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Names.Kind = "Shop" }, "KindConflict", `"Shop" is already in use`},
		{func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Names.ListKind = "ShopList" }, "ListKindConflict", `"ShopList" is already in use`},
		{func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Group, d.Spec.Names.Kind = "example.org", "Shop"
		}, "NoConflicts", "no conflicts found"},
	} {
		d := names(test.change)
		said := apihelpers.FindCRDCondition(d, apiextensionsv1.NamesAccepted)
		require.Equal(t, test.reason, said.Reason)
		require.Equal(t, test.refuse, said.Message)
		require.Equal(t, test.reason != "NoConflicts", apihelpers.IsCRDConditionFalse(d, apiextensionsv1.Established))
	}
}

// TestVersions: an object is served in each version as the version's schema says, and stored in
// one.
func TestVersions(t *testing.T) {
	d := loaded(t)
	d.Generation = 1
	versions, err := crd.Versions(d)
	require.NoError(t, err)
	require.Len(t, versions, 1)
	require.Nil(t, versions[0].Read, "what the first state of a definition stored is as it says")
	require.Nil(t, versions[0].Write)

	next := d.Spec.Versions[0].DeepCopy()
	next.Name, next.Storage = "v2", false
	next.Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"color": {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"red"`)}},
		}},
	}}
	next.Subresources, next.SelectableFields, next.AdditionalPrinterColumns = nil, nil, nil
	hidden := next.DeepCopy()
	hidden.Name, hidden.Served = "v3", false
	d.Spec.Versions = append(d.Spec.Versions, *next, *hidden)
	versions, err = crd.Versions(d)
	require.NoError(t, err)
	require.Len(t, versions, 2)
	v2 := versions[0]
	require.Equal(t, "v2", v2.Resource.Kind.Version, "the newest first")
	read, err := v2.Read([]byte(`{"apiVersion":"example.com/v1","kind":"Shop","metadata":{"name":"a"},"spec":{"gone":1}}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"apiVersion":"example.com/v2","kind":"Shop","metadata":{"name":"a"},"spec":{"color":"red"}}`, string(read))
	written, err := v2.Write(read)
	require.NoError(t, err)
	require.JSONEq(t, `{"apiVersion":"example.com/v1","kind":"Shop","metadata":{"name":"a"},"spec":{"color":"red"}}`, string(written))
	_, err = v2.Read([]byte(`{"spec":`))
	require.Error(t, err)

	d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
	versions, err = crd.Versions(d)
	require.NoError(t, err)
	require.Len(t, versions, 1, "the stored one needs no conversion")
	d.Spec.Versions[0].Served = false
	_, err = crd.Versions(d)
	require.ErrorContains(t, err, "none but those that a webhook converts")
}
