// Package static reads Kubernetes objects of any type from a file, a folder of files, or a URL. The
// package sources reads static pods with it.
//
//	configs := static.File("/etc/configs", manifest.Objects[corev1.ConfigMap](kind))
//	err := configs.Run(ctx, func(now static.State[*corev1.ConfigMap]) {
//		fmt.Println(now.Objects.Len(), "config maps")
//	})
//
// [Into] writes the states into any [store.Store]: one with indexes, or one that pushes.
//
// # Guarantees
//
//  1. Each state is complete. An object that has not changed is the same pointer in the next state.
//  2. A bad file, document or item costs only itself. Its last known good objects stay until it is
//     good again or gone, unless another file declares them. [Reader.Report] names it and the
//     reason, and never its content. If the name of a bad item can be read, only the object of that
//     name stays. Any other bad item keeps the objects that went when it came, since it may be any
//     of them. It keeps no object that goes later. [health.Report].Problems names the objects that
//     stay, and the item that they stay for.
//  3. An object that several files declare belongs to the file that had it first. The other files
//     stand by, and Problems names them; [File] has the whole rule. Within one file or answer, the
//     first declaration counts.
//  4. A file of a folder that is no manifest, such as a README.md or an empty file, hides nothing.
//     [health.Report].Warnings names it.
//  5. Changes of files are seen at once if the system reports them, and otherwise at the end of the
//     interval. A file that is being written is read once it is complete. The leftovers of editors
//     and package managers are ignored. FIFOs, sockets and devices are never opened.
//  6. Only an accepted answer of a URL counts. Requests are conditional, back off, and do not
//     follow redirects to other servers. No header, token, key or URL password is in any message.
//  7. When Run returns, every goroutine that it started has ended.
//
// Files and answers must have less than 10 MiB. Objects are shared and read-only.
//
// How the files and URLs of pods behave: docs/kubelet.md.
package static
