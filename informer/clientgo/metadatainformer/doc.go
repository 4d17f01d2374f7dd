// Package metadatainformer takes the place of k8s.io/client-go/metadata/metadatainformer. A program
// changes its import, and makes its client here, so that objects share memory:
//
//	client, err := metadatainformer.NewForConfig(config)
//	factory := metadatainformer.NewSharedInformerFactory(client, time.Hour)
//	secrets := factory.ForResource(corev1.SchemeGroupVersion.WithResource("secrets"))
//	factory.Start(ctx.Done())
//	factory.WaitForCacheSync(ctx.Done())
//	secrets.Lister().ByNamespace("default").Get("one")
//
// Listers are client-go's. The informers behind them are Tributary's: see package clientgo for the
// differences. Objects are read-only, as in client-go.
package metadatainformer
