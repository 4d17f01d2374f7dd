// Package dynamicinformer takes the place of k8s.io/client-go/dynamic/dynamicinformer. A program
// changes its import, and makes its client here, so that objects share memory:
//
//	client, err := dynamicinformer.NewForConfig(config)
//	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, time.Hour)
//	widgets := factory.ForResource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"})
//	factory.Start(ctx.Done())
//	factory.WaitForCacheSync(ctx.Done())
//	widgets.Lister().ByNamespace("default").Get("one")
//
// Listers are client-go's. The informers behind them are Tributary's: see package clientgo for the
// differences. Objects are read-only, as in client-go.
package dynamicinformer
