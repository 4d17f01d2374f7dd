package controllerruntime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewClient makes a client that reads its own writes, for NewClient in ctrl.Options and
// cluster.Options. It is controller-runtime's client of these options, and a read through a [Cache]
// waits until the cache shows the client's own writes:
//
//	ctrl.Options{NewCache: controllerruntime.NewCache, NewClient: controllerruntime.NewClient}
//
// A Get waits for the last write to its object, and a List for those to the objects of its
// namespace. If the context ends first, the error names the object, the awaited version and the
// cache's version. Nothing else waits: no read of another kind or object, and no read past the
// cache. client.DisableReadYourWritesConsistency exempts a single read or write: controller-runtime
// has it from 0.25 on. A write that has not returned, such as one of another goroutine, is not
// waited for.
//
// It fails if the options have a cache that is not a [Cache], or controller-runtime's own
// EnableReadYourWritesConsistency.
func NewClient(config *rest.Config, options client.Options) (client.Client, error) {
	if options.Cache == nil || options.Cache.Reader == nil || options.DryRun != nil && *options.DryRun {
		return client.New(config, options)
	}
	c, ok := options.Cache.Reader.(*Cache)
	of := cacheOptions{CacheOptions: options.Cache}
	switch enabled := of.EnableReadYourWritesConsistency; {
	case !ok:
		return nil, fmt.Errorf("controllerruntime: NewClient: the cache is a %T: set NewCache to controllerruntime.NewCache too", options.Cache.Reader)
	case enabled != nil && *enabled:
		return nil, errors.New("controllerruntime: NewClient: EnableReadYourWritesConsistency is set, and this client does its work: remove one of the two")
	case config == nil:
		return nil, errors.New("controllerruntime: NewClient: the config is nil")
	}
	if options.HTTPClient == nil {
		var err error
		if options.HTTPClient, err = rest.HTTPClientFor(config); err != nil {
			return nil, fmt.Errorf("controllerruntime: NewClient: %w", err)
		}
	}
	options.HTTPClient = listening(options.HTTPClient)
	through, err := client.New(config, options)
	if err != nil {
		return nil, err
	}
	own := &ownWrites{
		Client: through, cache: c, unstructured: options.Cache.Unstructured,
		uncached: map[schema.GroupVersionKind]bool{}, kinds: map[schema.GroupVersionKind]*writes{},
	}
	for _, obj := range options.Cache.DisableFor {
		gvk, err := through.GroupVersionKindFor(obj)
		if err != nil {
			return nil, err
		}
		own.uncached[gvk] = true
	}
	options.Cache, options.Mapper = nil, through.RESTMapper()
	own.past, err = client.New(config, options)
	return own, err
}

// ownWrites is a client that reads its own writes.
type ownWrites struct {
	client.Client
	past         client.Reader // the cache
	cache        *Cache
	unstructured bool // unstructured objects are read from the cache
	uncached     map[schema.GroupVersionKind]bool

	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]*writes
}

// of returns the writes of a kind; nil if the cache is never asked for it.
func (c *ownWrites) of(gvk schema.GroupVersionKind) *writes {
	if c.uncached[gvk] {
		return nil
	}
	c.mu.Lock()
	w, ok := c.kinds[gvk]
	c.mu.Unlock()
	if ok {
		return w
	}
	mapping, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil // the write fails too
	}
	w = &writes{
		cache: c.cache, gvk: gvk, configs: c.cache.settings.of(gvk, !isRoot(mapping)),
		pending: map[client.ObjectKey]write{}, floors: map[string]string{}, past: map[scope]view{},
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if other, ok := c.kinds[gvk]; ok {
		return other
	}
	c.kinds[gvk] = w
	return w
}

// Get implements client.Reader.
func (c *ownWrites) Get(ctx context.Context, key client.ObjectKey, out client.Object, optionList ...client.GetOption) error {
	options := getOptions{GetOptions: (&client.GetOptions{}).ApplyOptions(optionList)}
	if !options.DisableReadYourWritesConsistency {
		// A read of a cluster-scoped object may name a namespace, which counts for nothing.
		if err := c.wait(ctx, out, reads{key.Namespace, key.Name}); err != nil {
			return err
		}
	}
	return c.Client.Get(ctx, key, out, optionList...)
}

// List implements client.Reader.
func (c *ownWrites) List(ctx context.Context, out client.ObjectList, optionList ...client.ListOption) error {
	options := listOptions{ListOptions: (&client.ListOptions{}).ApplyOptions(optionList)}
	if !options.DisableReadYourWritesConsistency {
		if err := c.wait(ctx, out, reads{namespace: options.Namespace}); err != nil {
			return err
		}
	}
	return c.Client.List(ctx, out, optionList...)
}

// wait blocks until the cache shows the writes that a read must show. It leaves errors of the read
// itself to the read.
func (c *ownWrites) wait(ctx context.Context, out runtime.Object, r reads) error {
	if _, is := out.(runtime.Unstructured); is && !c.unstructured {
		return nil
	}
	k, err := c.cache.kindOf(out)
	if err != nil {
		return nil
	}
	example := out
	if _, is := out.(client.ObjectList); is {
		k.Kind, example = strings.TrimSuffix(k.Kind, "List"), nil
	}
	c.mu.Lock()
	w := c.kinds[k.GroupVersionKind]
	c.mu.Unlock()
	if w == nil {
		return nil
	}
	found, floors := w.unseen(r)
	if len(found)+len(floors) == 0 {
		return nil
	}
	held, err := c.cache.view(ctx, k, example)
	if err != nil {
		return nil
	}
	return w.wait(ctx, held, found, floors)
}

// Create implements client.Writer.
func (c *ownWrites) Create(ctx context.Context, obj client.Object, options ...client.CreateOption) error {
	o := createOptions{CreateOptions: (&client.CreateOptions{}).ApplyOptions(options)}
	return c.write(obj, obj, goesUnnoted(o.DisableReadYourWritesConsistency, o.DryRun), func() error {
		return c.Client.Create(ctx, obj, options...)
	})
}

// Update implements client.Writer.
func (c *ownWrites) Update(ctx context.Context, obj client.Object, options ...client.UpdateOption) error {
	o := updateOptions{UpdateOptions: (&client.UpdateOptions{}).ApplyOptions(options)}
	return c.write(obj, obj, goesUnnoted(o.DisableReadYourWritesConsistency, o.DryRun), func() error {
		return c.Client.Update(ctx, obj, options...)
	})
}

// Patch implements client.Writer.
func (c *ownWrites) Patch(ctx context.Context, obj client.Object, patch client.Patch, options ...client.PatchOption) error {
	o := patchOptions{PatchOptions: (&client.PatchOptions{}).ApplyOptions(options)}
	return c.write(obj, obj, goesUnnoted(o.DisableReadYourWritesConsistency, o.DryRun), func() error {
		return c.Client.Patch(ctx, obj, patch, options...)
	})
}

// goesUnnoted reports whether no read waits for a write: it is exempt, or writes nothing.
func goesUnnoted(exempt bool, dryRun []string) bool { return exempt || len(dryRun) > 0 }

// write does a write and reads the server's answer into answer: obj itself, or a subresource of it.
func (c *ownWrites) write(obj, answer client.Object, unnoted bool, do func() error) error {
	gvk, err := c.GroupVersionKindFor(obj)
	if err := do(); err != nil {
		return err
	}
	if err != nil || unnoted {
		return nil
	}
	if w := c.of(gvk); w != nil {
		now := outcomeOf(answer)
		now.whole = answer == obj
		w.wrote(client.ObjectKeyFromObject(obj), now)
	}
	return nil
}

func outcomeOf(obj client.Object) outcome {
	now := outcome{Object: obj, whole: true}
	switch obj := obj.(type) {
	case *metav1.PartialObjectMetadata:
	case runtime.Unstructured:
		now.content = obj.UnstructuredContent
	default:
		now.content = func() map[string]any {
			content, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
			return content
		}
	}
	return now
}

// Apply implements client.Writer.
func (c *ownWrites) Apply(ctx context.Context, obj runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	o := applyOptions{ApplyOptions: (&client.ApplyOptions{}).ApplyOptions(options)}
	return c.apply(ctx, obj, true, goesUnnoted(o.DisableReadYourWritesConsistency, o.DryRun), func(ctx context.Context) error {
		return c.Client.Apply(ctx, obj, options...)
	})
}

// apply does a write without an object for the answer: configurations have no common interface for
// one.
func (c *ownWrites) apply(ctx context.Context, obj runtime.ApplyConfiguration, whole, unnoted bool, do func(context.Context) error) error {
	if unnoted {
		return do(ctx)
	}
	var named metav1.PartialObjectMetadata
	text, err := json.Marshal(obj)
	if err == nil {
		err = json.Unmarshal(text, &named)
	}
	var said answer
	if err := do(said.listen(ctx)); err != nil {
		return err
	}
	if err != nil {
		return nil
	}
	w := c.of(named.GroupVersionKind())
	var now unstructured.Unstructured
	if w != nil && now.UnmarshalJSON(said.body) == nil {
		w.wrote(client.ObjectKeyFromObject(&named), outcome{&now, whole, now.UnstructuredContent})
	}
	return nil
}

// Delete implements client.Writer.
func (c *ownWrites) Delete(ctx context.Context, obj client.Object, options ...client.DeleteOption) error {
	o := deleteOptions{DeleteOptions: (&client.DeleteOptions{}).ApplyOptions(options)}
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil || goesUnnoted(o.DisableReadYourWritesConsistency, o.DryRun) {
		return c.Client.Delete(ctx, obj, options...)
	}
	w := c.of(gvk)
	if w == nil {
		return c.Client.Delete(ctx, obj, options...)
	}
	key := client.ObjectKeyFromObject(obj)
	uid, given := obj.GetUID(), obj.GetUID()
	if o.Preconditions != nil && o.Preconditions.UID != nil {
		uid = *o.Preconditions.UID
	}
	if uid == "" {
		uid = w.uid(key) // before the deletion: afterwards it may be another object's
	}
	var said answer
	if err := c.Client.Delete(said.listen(ctx), obj, options...); err != nil {
		return err
	}
	read, err := said.read()
	switch {
	case err == nil && read.UID != "": // the object, which a grace period or finalizers may keep
		last := outcome{Object: &read.PartialObjectMetadata, whole: true}
		if read.DeletionTimestamp == nil {
			w.deleted(key, read.UID, &last)
		} else {
			w.wrote(key, last)
		}
		return nil
	case err == nil && read.Details.UID != "":
		uid = read.Details.UID
	}
	if given != "" && given == uid {
		last := outcomeOf(obj)
		w.deleted(key, uid, &last)
	} else {
		w.deleted(key, uid, nil)
	}
	return nil
}

// DeleteAllOf implements client.Writer. The answer names the objects as they were, so one list of
// metadata after it asks the server which of them stay.
func (c *ownWrites) DeleteAllOf(ctx context.Context, obj client.Object, options ...client.DeleteAllOfOption) error {
	o := (&client.DeleteAllOfOptions{}).ApplyOptions(options)
	deletes := deleteOptions{DeleteOptions: &o.DeleteOptions}
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil || goesUnnoted(deletes.DisableReadYourWritesConsistency, o.DryRun) {
		return c.Client.DeleteAllOf(ctx, obj, options...)
	}
	w := c.of(gvk)
	if w == nil {
		return c.Client.DeleteAllOf(ctx, obj, options...)
	}
	var said answer
	if err := c.Client.DeleteAllOf(said.listen(ctx), obj, options...); err != nil {
		return err
	}
	read, err := said.read()
	if err != nil || len(read.Items) == 0 {
		return nil
	}
	present := &metav1.PartialObjectMetadataList{}
	present.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	selected := client.ListOptions{Namespace: o.Namespace, LabelSelector: o.LabelSelector, FieldSelector: o.FieldSelector}
	if err := c.past.List(ctx, present, &selected); err != nil {
		return fmt.Errorf("controllerruntime: %s were deleted, but not which of them stay for now: list them: %w", gvk.Kind, err)
	}
	staying := map[types.UID]*metav1.PartialObjectMetadata{}
	for i := range present.Items {
		staying[present.Items[i].UID] = &present.Items[i]
	}
	for i := range read.Items {
		was := &read.Items[i]
		key := client.ObjectKeyFromObject(was)
		if now := staying[was.UID]; now != nil {
			w.wrote(key, outcome{Object: now, whole: true})
		} else {
			w.deleted(key, was.UID, &outcome{Object: was, whole: true})
		}
	}
	return nil
}

// Status implements client.StatusClient.
func (c *ownWrites) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource implements client.SubResourceClientConstructor.
func (c *ownWrites) SubResource(name string) client.SubResourceClient {
	return subResource{c.Client.SubResource(name), c}
}

// subResource notes writes that are answered with the version of the object. A created subresource,
// such as an eviction, is not.
type subResource struct {
	client.SubResourceClient
	own *ownWrites
}

// Update implements client.SubResourceWriter.
func (s subResource) Update(ctx context.Context, obj client.Object, options ...client.SubResourceUpdateOption) error {
	o := subResourceUpdateOptions{SubResourceUpdateOptions: (&client.SubResourceUpdateOptions{}).ApplyOptions(options)}
	return s.own.write(obj, bodyOf(obj, o.SubResourceBody), goesUnnoted(o.DisableReadYourWritesConsistency, o.DryRun), func() error {
		return s.SubResourceClient.Update(ctx, obj, options...)
	})
}

// Patch implements client.SubResourceWriter.
func (s subResource) Patch(ctx context.Context, obj client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	o := subResourcePatchOptions{SubResourcePatchOptions: (&client.SubResourcePatchOptions{}).ApplyOptions(options)}
	return s.own.write(obj, bodyOf(obj, o.SubResourceBody), goesUnnoted(o.DisableReadYourWritesConsistency, o.DryRun), func() error {
		return s.SubResourceClient.Patch(ctx, obj, patch, options...)
	})
}

// Apply implements client.SubResourceWriter.
func (s subResource) Apply(ctx context.Context, obj runtime.ApplyConfiguration, options ...client.SubResourceApplyOption) error {
	o := subResourceApplyOptions{SubResourceApplyOptions: (&client.SubResourceApplyOptions{}).ApplyOpts(options)}
	return s.own.apply(ctx, obj, o.SubResourceBody == nil, goesUnnoted(o.DisableReadYourWritesConsistency, o.DryRun), func(ctx context.Context) error {
		return s.SubResourceClient.Apply(ctx, obj, options...)
	})
}

// bodyOf returns the object that the answer is read into.
func bodyOf(obj, body client.Object) client.Object {
	if body == nil {
		return obj
	}
	return body
}
