// Package static reads Kubernetes objects of any type from where somebody has written them down: a file, a folder of files,
// or a URL. The pods of the package sources are one use of it.
//
//	configs := static.File("/etc/configs", manifest.Objects[corev1.ConfigMap](kind))
//	err := configs.Run(ctx, func(now static.State[*corev1.ConfigMap]) {
//		fmt.Println(now.Objects.Len(), "config maps")
//	})
//
// [Into] writes the states into any [store.Store] in place of a function, such as one with indexes, or one that pushes.
//
// # What is guaranteed
//
//  1. Each state is complete. What has not changed is the same object in the next one.
//  2. A file, a document or an item that cannot be used costs only itself, and what it declared when it was last good stays,
//     until it is good again or gone. [Reader.Report] names it, and the reason, and never its content.
//     A bad item whose name can be read keeps the object of that name alone. Any other bad item
//     keeps the objects that went when it came, since it may be any of them, and none that goes
//     later. [health.Report].Problems names what is kept, and for which item.
//  3. An object that several files declare belongs to the file that had it first. The others stand
//     by, and are named in Problems; [File] has the whole rule. In one file or answer, the first
//     counts.
//  4. Changes of files are seen at once where the system tells of them, and at the latest when the period is over; a file
//     that is being written is waited for. Editors' and package managers' leftovers are passed over; FIFOs, sockets and
//     devices are never opened.
//  5. Of a URL only an answer that was accepted counts. Requests are conditional, back off, and are not redirected to other
//     servers. No header, token, key or URL password is in any message.
//  6. When Run returns, all that it started has ended.
//
// Files and answers have less than 10 MiB. Objects are shared and read-only.
package static
