package suites

import "strings"

// fakeSpecs are the specs of the fake that do not pass on a server of ours, and why. A name that
// begins with a star is that of four specs: the fake has them in four contexts.
var fakeSpecs = []struct {
	failure
	names []string
}{
	{failure{"the fake's objects have no UID, no times and no generation, and the version 999", "to equal"}, []string{
		"* should be able to Get",
		"* should reject updates with non-matching ResourceVersion",
		"should set the ResourceVersion to 999 when adding an object to the tracker",
	}},
	{failure{"the fake's objects have no UID, no times and no generation, and the version 999", "to consist of"}, []string{
		"* should be able to List",
		"* should support filtering by labels and their values",
		"* should support filtering by label existence",
		"* should reject Delete with a mismatched ResourceVersion",
		"* should be able to Delete with no ResourceVersion Precondition",
		"* should be able to Delete with no opts even if object's ResourceVersion doesn't match server",
	}},
	{failure{"the fake's objects have no UID, no times and no generation, and no managed fields", "UID: "}, []string{
		"should not change non-status field of typed objects that have a status subresource on status update",
		"should be able to update an object after updating an object's status",
		"should be able to update an object's status after updating an object",
		"should not change non-status field of typed objects that have a status subresource on status patch",
		"should only change status on status apply",
		"should be able to Get scale subresources for resource *v1.Deployment",
		"should be able to Get scale subresources for resource *v1.ReplicaSet",
		"should be able to Get scale subresources for resource *v1.ReplicationController",
		"should be able to Get scale subresources for resource *v1.StatefulSet",
		"should be able to Update scale subresources for resource *v1.Deployment",
		"should be able to Update scale subresources for resource *v1.ReplicaSet",
		"should be able to Update scale subresources for resource *v1.ReplicationController",
		"should be able to Update scale subresources for resource *v1.StatefulSet",
	}},
	{failure{"the fake counts the writes of each object, from 1 or 999: a server counts all writes", "to equal"}, []string{
		"* should be able to Create",
		"* should be able to Update",
		"* should allow updates with non-set ResourceVersion for a resource that allows unconditional updates",
		"* should allow create on update for a resource that allows create on update",
		"* should be able to Patch",
		"should use a per-object ResourceVersion counter by default",
		"should use a single global ResourceVersion counter when WithGlobalResourceVersionCounter is used",
		"should allow concurrent updates to an object that allows unconditionalUpdate if the incoming request has no RV",
	}},
	{failure{"the fake counts the writes of each object, from 1", "to be equivalent to"}, []string{
		"sets resourceVersion on SSA create",
	}},
	{failure{"the fake's version 999, or 1 in a dry run, is none that the server has given", "the object has been modified"}, []string{
		"* should successfully Delete with a matching ResourceVersion",
		"* with the DryRun option should not Update the object",
		"mutating operations return the updated object update",
	}},
	{failure{"the fake's lists have no version", "ListMeta"}, []string{"should leave typemeta empty on typed list"}},
	{failure{"the fake lists by the indexes of a cache: an API server has its own field labels", "field label not supported"}, []string{
		"with Indexes client has just one Index filtered List using field selector returns two deployments that match the only field selector requirement",
		"with Indexes client has just one Index filtered List using field selector returns no object because no object matches the only field selector requirement",
		"with Indexes client has just one Index filtered List using field selector returns deployment that matches both the field and label selectors",
		"with Indexes client has just one Index filtered List using field selector returns no object even if field selector matches because label selector doesn't",
		"with Indexes client has just one Index filtered List using field selector returns no object even if label selector matches because field selector doesn't",
		"with Indexes client has two Indexes filtered List using field selector uses the second index to retrieve the indexed objects when there are matches",
		"with Indexes client has two Indexes filtered List using field selector uses the second index to retrieve the indexed objects when there are no matches",
		"with Indexes client has two Indexes filtered List using field selector no error when field selector uses two requirements",
	}},
	{failure{"AddIndex is a function of the fake", ""}, []string{
		"with Indexes client has just one Index filtered List using field selector supports adding an index at runtime",
		"with Indexes client has just one Index filtered List using field selector Is not a datarace to add and use indexes in parallel",
	}},
	{failure{"a server names the kind of the list, whatever the caller has set", "to equal"}, []string{
		"* should be able to List using unstructured list when setting a non-list kind",
		"* should be able to List an unregistered type using unstructured with Kind",
	}},

	// What the fake does otherwise than kube-apiserver 1.36: ours does as that.
	{failure{"a create with a version is a 500", "to be true"}, []string{"* should error on create with set resourceVersion"}},
	{failure{"the error names generateName too", "name or gen"}, []string{"* should error on Create with empty Name"}},
	{failure{"the client sends no update without a name", "resource name may not be empty"}, []string{"* should error on Update with empty Name"}},
	{failure{"an apply with the version 0 has no precondition", "to be true"}, []string{"* should reject apply with non-matching ResourceVersion"}},
	{failure{"a DELETE of a collection in all namespaces is a 405", "the server does not allow DELETE"}, []string{
		"* with the DryRun option Should not Delete the object",
		"If a DeleteAllOf races with a delete, the DeleteAllOf should always succeed",
	}},
	{failure{"a patch that removes the deletion time changes nothing", "Expected an error"}, []string{"* should reject changes to deletionTimestamp on Patch"}},
	{failure{"a version that is no number is not a conflict", "to be true"}, []string{
		"should return a conflict error when an incorrect RV is used on status update",
		"should block SSA apply on status when passing the wrong non empty resource version",
	}},
	{failure{"a pod needs containers, and its spec is completed", "spec.containers: Required value"}, []string{
		"should not change the status of typed objects that have a status subresource on patch",
		"should not change the status of objects with status subresource when creating through apply ",
		"should not change the status of objects with status subresource when updating through apply ",
		"should not change the status of known unstructured objects that have a status subresource on update",
		"should not change non-status field of known unstructured objects that have a status subresource on status update",
	}},
	{failure{"an update of a custom resource needs a version", "must be specified for an update"}, []string{
		"should Unmarshal the schemaless object with int64 to preserve ints",
		"should Unmarshal the schemaless object with float64 to preserve ints",
		"should not change the status of unstructured objects that are configured to have a status subresource on update",
		"should not change non-status fields of unstructured objects that are configured to have a status subresource on status update",
	}},
	{failure{"an update of a status resets the managed fields, too", "to have length 2"}, []string{
		"should not be able to manually update the fieldManager through a status update",
	}},
	{failure{"an empty list of managed fields is not on the wire", "to be empty"}, []string{
		"does not retain stored managed fields when the incoming update has an empty slice",
	}},
	{failure{"answers have managed fields, and what was answered cannot be applied again", "metadata.managedFields must be nil"}, []string{
		"supports server-side apply of a client-go resource",
		"supports server-side apply of a custom resource",
		"supports server-side apply of a custom resource via Apply method",
		"supports server-side apply of a custom resource via Apply method after List with a non-list kind",
	}},
	{failure{"answers have managed fields", "ManagedFieldsEntry"}, []string{
		"clears managedFields from objects in a list",
		"mutating operations return the updated object Create through Apply",
		"mutating operations return the updated object Update through Apply",
		"mutating operations return the updated object status Apply",
	}},
	{failure{"the builder's objects have no managed fields: their replicas belong to before-first-apply", "before-first-apply"}, []string{
		"mutating operations return the updated object scale Apply",
		"should be able to Apply scale subresources for resource *v1.Deployment",
		"should be able to Apply scale subresources for resource *v1.ReplicaSet",
		"should be able to Apply scale subresources for resource *v1.ReplicationController",
		"should be able to Apply scale subresources for resource *v1.StatefulSet",
	}},
	{failure{"a finalizer is a qualified name", "name is neither a standard finalizer name"}, []string{
		"will silently ignore a deletionTimestamp update through SSA",
	}},
	{failure{"a scale without a version has no precondition: after the update, both succeed", "not to equal"}, []string{
		"If an update races with a scale update, only one of them succeeds",
	}},
	{failure{"a pod has no scale, and the error is a NotFound", "unimpl"}, []string{"disallows scale subresources on unsupported built-in types"}},

	// What the real client does otherwise than the fake.
	{failure{"the client sends no request without a name", "to be true"}, []string{
		"should error when creating an eviction with the wrong type",
		"should error when creating a token with the wrong subresource type",
		"should error when creating a token with the wrong type",
	}},
	{failure{"the client reads the answer, a Scale, into the object that was given", "resource name may not be empty"}, []string{
		"should be able to change typed objects that have a scale subresource on patch",
	}},
	{failure{"the client takes no typed scale of an unstructured object", "unstructured client did not understand"}, []string{
		"structured and unstructured scale subresources behave consistently",
	}},
	{failure{"the client leaves the type of an object that it writes as it was", "to equal"}, []string{
		"clears typemeta from structured objects on update",
		"clears typemeta from structured objects on patch",
	}},

	// What ours lacks.
	{failure{"the old bindings of a namespace are not served; those of a pod are", `no matches for kind "Binding"`}, []string{
		"* should reject updates with non-set ResourceVersion for a resource that doesn't allow unconditional updates",
	}},
	{failure{"a PUT does not create, as it does for five kinds of kube-apiserver's", "not found"}, []string{
		"If a create races with an update for an object that allows createOnUpdate, the update should always succeed",
		"If a delete races with an update for an object that allows createOnUpdate, the update should always succeed",
		"sets the fieldManager when creating through update",
	}},
	{failure{"an apply that creates may name a version with kube-apiserver", "resourceVersion should not be set on objects to be created"}, []string{
		"ignores a passed resourceVersion on SSA create",
	}},
	// It fails in one way or another: the fake's versions are expected too.
	{failure{"of fifty patches at once, some are given up after five tries", ""}, []string{"should allow concurrent patches to a configMap"}},
}

// fakeElsewhere are the specs that send nothing to a server, and what they are about.
var fakeElsewhere = map[string][]string{
	"the fake's type converters": {
		"multiTypeConverter ObjectToTyped should use first converter when it succeeds",
		"multiTypeConverter ObjectToTyped should use second converter when first fails",
		"multiTypeConverter ObjectToTyped should return aggregate error when all converters fail",
		"multiTypeConverter ObjectToTyped should return error when no converters provided",
		"multiTypeConverter TypedToObject should use first converter when it succeeds",
		"multiTypeConverter TypedToObject should use second converter when first fails",
		"multiTypeConverter TypedToObject should return aggregate error when all converters fail",
		"multiTypeConverter TypedToObject should return error when no converters provided",
		"Fake client supports server-side apply using a custom type converter",
	},
	"the fake's builder and its tracker": {
		"* should reject deletionTimestamp without finalizers on Build",
		"Fake client should be able to build with given tracker and get resource",
		"Fake client will error out if an object with invalid managedFields is added",
		"Fake client allows adding an object with managedFields",
		"Fake client allows adding an object with invalid managedFields when not using the FieldManagedObjectTracker",
		"Fake client builder panics when an index with the same name and GroupVersionKind is registered twice",
		"Fake client builder should wrap the fake client with an interceptor when WithInterceptorFuncs is called",
		"Fake client builder supports AddIndex when the client is wrapped with an interceptor",
		"Fake client builder should panic when calling build more than once",
	},
	"what the real client refuses before it asks: to create from metadata, a typed scale of an unstructured object": {
		"* should be able to Get an unregistered type using PartialObjectMetadata",
		"* should be able to Patch an unregistered type using PartialObjectMetadata",
		"* should be able to Delete an unregistered type using PartialObjectMetadata",
		"Fake client supports scale subresources on unstructured objects with spec.replicas",
	},
}

// fakeContexts have the same specs.
var fakeContexts = []string{
	"with default scheme.Scheme", "with given scheme",
	"with Indexes client has just one Index behavior that doesn't use an Index",
	"with Indexes client has two Indexes behavior that doesn't use an Index",
}

// fakeTable is of controller-runtime v0.25.2.
func fakeTable() table {
	t := table{elsewhere: map[string]string{}, fails: map[string]failure{}, passing: map[string]int{"server": fakePassing}}
	for _, group := range fakeSpecs {
		for _, name := range group.names {
			for _, full := range fakeNames(name) {
				t.fails[full] = group.failure
			}
		}
	}
	for about, names := range fakeElsewhere {
		for _, name := range names {
			for _, full := range fakeNames(name) {
				t.elsewhere[full] = about
			}
		}
	}
	return t
}

// fakeNames are the full names of the specs that a name in the lists above stands for.
func fakeNames(name string) (full []string) {
	rest, star := strings.CutPrefix(name, "*")
	if !star && (strings.HasPrefix(name, "multiTypeConverter ") || strings.HasPrefix(name, "Fake client ")) {
		return []string{name}
	}
	if !star {
		return []string{"Fake client " + name}
	}
	for _, context := range fakeContexts {
		full = append(full, "Fake client "+context+rest)
	}
	return full
}
