package listwatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/internal/sharing"
	"github.com/tributary-go/tributary/internal/watchlist"
	"github.com/tributary-go/tributary/store"
)

// FromClient reads a resource of a REST client. resource is the plural name in the path, such as
// "pods". The client determines group, version, address and credentials. A typed clientset has one
// client per group version; [NewRESTClient] makes one for any. O is the object's struct type:
//
//	listwatch.FromClient[corev1.Pod](clientset.CoreV1().RESTClient(), "pods")
//	listwatch.FromClient[unstructured.Unstructured](client, "widgets")
//	listwatch.FromClient[metav1.PartialObjectMetadata](client, "secrets")
//
// For metadata, and for types with generated protobuf code, it requests protobuf first; the server
// may answer JSON. It never requests CBOR, whatever client-go's gates say. The client retries no
// request: the caller sees every answer.
//
// FromClient panics if the client is nil, or a nil pointer: client-go's fake clientsets return such
// a client.
func FromClient[O any, T interface {
	*O
	store.Object
}](client rest.Interface, resource string, optionList ...Option) *ListWatch[T] {
	return fromClient("FromClient", client, resource, newDecoder[O, T](), optionList)
}

func fromClient[T store.Object](op string, client rest.Interface, resource string, decoder *decoder[T], optionList []Option) *ListWatch[T] {
	if null.Is(client) {
		panic(fmt.Sprintf("listwatch: "+op+": the client is nil (%T): a fake clientset of client-go has none: "+
			"read it with FromFuncs, or use the package listwatchtest", client))
	}
	client, scope := sharing.Unscoped(client)
	if resource == "" {
		panic("listwatch: " + op + ": the resource is empty: give its plural name, such as \"pods\"")
	}
	c := &clientSource[T]{
		client: paced(client), resource: resource, options: apply(op, optionList), origin: origin{client, resource},
		decoder: decoder,
	}
	c.decoder.drop, c.decoder.asClientGo, c.decoder.fleeting = c.options.dropManaged, c.options.asClientGo, resource == secrets
	if !c.options.noSharing && resource != secrets {
		c.decoder.share(client.APIVersion().WithResource(resource).String(), scope)
	}
	c.acceptList, c.acceptWatch = accepts(c.decoder, c.options)
	return detected(c.listWatch(), c.options)
}

// secrets share nothing, in whatever form they are read: the memo of an object can outlive it.
const secrets = "secrets"

func (c *clientSource[T]) listWatch() *ListWatch[T] {
	of := schema.GroupResource{Group: c.client.APIVersion().Group, Resource: c.resource}
	lw := &ListWatch[T]{
		list: c.list, watch: c.watch, lookup: c.lookup, metadata: c.metadata,
		collection: collection{of.String(), c.options.namespace}, origin: c.origin,
		encoded: c.encoded, noWatchList: c.options.noWatchList, nameless: c.options.asClientGo, sharing: c.decoder.stats, private: c.decoder.memo == nil,
		holding: func(held heldCopy[T]) ListerWatcher[T] {
			decoder := *c.decoder
			decoder.held = &held
			holding := *c
			holding.decoder = &decoder
			return holding.listWatch()
		},
		unshared: func() *ListWatch[T] { return c.unshared().listWatch() },
		passing:  func() *ListWatch[T] { return c.passing().listWatch() },
	}
	if c.decoder.memo != nil {
		lw.pass = c.decoder.memo.Pass
	}
	return lw
}

// passing is the source for a reader that keeps no object.
func (c *clientSource[T]) passing() *clientSource[T] {
	if c.decoder.memo == nil {
		return c
	}
	decoder, passing := *c.decoder, *c
	decoder.memo = decoder.memo.Passing()
	passing.decoder = &decoder
	return &passing
}

// unshared is the source for [ListWatch.Unshared].
func (c *clientSource[T]) unshared() *clientSource[T] {
	decoder := *c.decoder
	decoder.memo, decoder.held = nil, nil
	alone := *c
	alone.decoder = &decoder
	return &alone
}

// NewRESTClient makes a REST client for one group version, for [FromClient] without a typed
// clientset: custom resources, or the metadata of any resource. Clients made from equal configs
// share connections.
func NewRESTClient(config *rest.Config, groupVersion schema.GroupVersion) (rest.Interface, error) {
	if config == nil {
		return nil, errors.New("listwatch: NewRESTClient: the config is nil: rest.InClusterConfig makes one")
	}
	if err := addressError(config.Host); err != nil {
		return nil, fmt.Errorf("listwatch: client for %s: %w", groupVersion, err)
	}
	config = rest.CopyConfig(config)
	config.GroupVersion = &groupVersion
	config.APIPath = "/apis"
	if groupVersion.Group == "" {
		config.APIPath = "/api"
	}
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // errors are Statuses
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	if config.UserAgent == "" {
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("listwatch: client for %s: %w", groupVersion, err)
	}
	return client, nil
}

type clientSource[T store.Object] struct {
	client                  rest.Interface
	resource                string
	origin                  origin
	options                 options
	acceptList, acceptWatch string
	decoder                 *decoder[T]
}

func (c *clientSource[T]) list(ctx context.Context, request metav1.ListOptions) List[T] {
	var meta metav1.ListMeta
	items := func(yield func(T, error) bool) {
		get := c.get(c.acceptList, request)
		body, err := open(ctx, get)
		if err == nil {
			c.decoder.begin(request)
			defer body.Close()
			meta, err = c.decoder.list(body, shardItems(ctx, c.options.shard, yield))
		}
		if err != nil && !errors.Is(err, errStopped) {
			var none T
			yield(none, c.failure(ctx, "list", get.URL(), err))
		}
	}
	return List[T]{Items: items, Meta: func() metav1.ListMeta { return shardMeta(c.options.shard, meta) }}
}

func (c *clientSource[T]) watch(ctx context.Context, request metav1.ListOptions) iter.Seq2[Event[T], error] {
	request.Watch = true
	return func(yield func(Event[T], error) bool) {
		body, err := open(ctx, c.get(c.acceptWatch, request)) // not held as long as the watch
		if err == nil {
			c.decoder.begin(request)
			defer body.Close()
			err = c.decoder.watch(body, watchlist.Asked(request), shardEvents(ctx, c.options.shard, yield))
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(Event[T]{}, c.failure(ctx, "watch", c.get(c.acceptWatch, request).URL(), err))
		}
	}
}

// lookup lists one object. Of a namespaced path the server reads no other one for it.
func (c *clientSource[T]) lookup(ctx context.Context, namespace, name string) List[T] {
	one := *c
	one.options.namespace = namespace
	selector := fields.OneTermEqualSelector("metadata.name", name).String()
	if one.options.fieldSelector != "" {
		selector = one.options.fieldSelector + "," + selector
	}
	one.options.fieldSelector = selector
	return one.list(ctx, metav1.ListOptions{Limit: 1})
}

// metadata lists the same collection as metadata, which shares nothing with the objects.
func (c *clientSource[T]) metadata(ctx context.Context, request metav1.ListOptions) List[*metav1.PartialObjectMetadata] {
	bare := clientSource[*metav1.PartialObjectMetadata]{
		client: c.client, resource: c.resource, options: c.options, decoder: newDecoder[metav1.PartialObjectMetadata](),
	}
	bare.decoder.drop, bare.decoder.asClientGo, bare.decoder.fleeting = c.options.dropManaged, c.options.asClientGo, c.decoder.fleeting
	bare.acceptList, _ = accepts(bare.decoder, c.options)
	return bare.list(ctx, request)
}

// get is the request. It does not retry: the caller must see and obey a 429.
func (c *clientSource[T]) get(accept string, request metav1.ListOptions) *rest.Request {
	request = c.options.narrow(request)
	get := c.client.Get()
	if c.options.shardSelector != "" {
		get.Param("shardSelector", c.options.shardSelector) // an older client-go has no such field
	}
	return get.
		NamespaceIfScoped(c.options.namespace, c.options.namespace != "").
		Resource(c.resource).
		SpecificallyVersionedParams(&request, metav1.ParameterCodec, metav1.SchemeGroupVersion).
		SetHeader("Accept", accept).
		Throttle(limiterOf(c.client.GetRateLimiter(), request.Watch)).
		MaxRetries(0)
}

// open sends the request and returns the body of a 2xx answer.
func open(ctx context.Context, get *rest.Request) (io.ReadCloser, error) {
	body, err := get.Stream(ctx)
	if err != nil {
		return nil, explain(err)
	}
	return body, nil
}

func (c *clientSource[T]) failure(ctx context.Context, op string, address *url.URL, err error) error {
	err = answered(broken(err), address)
	if ctx.Err() == nil {
		err = timedOut(err, op, c.client)
	}
	where := c.resource
	if c.options.namespace != "" {
		where += " in " + c.options.namespace
	}
	if apierrors.IsNotFound(err) {
		err = c.notFound(err)
	}
	return fmt.Errorf("%s %s: %w", op, where, err)
}

// kindOf returns the kind of a Go type, which by convention is its name. Unstructured objects may
// be of any kind, and a server without the metadata form answers with whole objects.
func kindOf(example any) string {
	switch example.(type) {
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
		return ""
	}
	return reflect.TypeOf(example).Elem().Name()
}
