// Package informers takes the place of k8s.io/client-go/informers. A program changes its import,
// and nothing else:
//
//	import "github.com/tributary-go/tributary/informer/clientgo/informers"
//
//	factory := informers.NewSharedInformerFactory(clientset, time.Hour)
//	pods := factory.Core().V1().Pods()
//	factory.Start(ctx.Done())
//	factory.WaitForCacheSync(ctx.Done())
//	pods.Lister().Pods("default").Get("web-0")
//
// The factory, its listers and its typed informers are client-go's. The informers behind them are
// Tributary's: see package clientgo for the differences. For factories that were generated for
// custom resources, see clientgo.Factory.
//
// Objects share memory, and are read-only, as in client-go. A clientset without REST clients, such
// as client-go's fake, is read through its functions, and nothing is shared.
//
// How to move a program: docs/howto/from-client-go.md.
package informers
