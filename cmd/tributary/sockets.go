package main

import (
	"net/url"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/embed"
)

// keepPrivate has etcd listen on sockets in a new folder, which only the user of this process can
// open. etcd has no authentication here, and answers web pages of every origin: on a port, all
// users and all pages would get past the server's token. The path of a socket is at most some 100
// bytes, so the folder is not the one of the data.
func keepPrivate(config *embed.Config) (folder string, err error) {
	folder, err = os.MkdirTemp("", "tributary-etcd-") // of mode 0700
	if err != nil {
		return "", err
	}
	socket := func(name string) []url.URL {
		return []url.URL{{Scheme: "unix", Path: filepath.ToSlash(filepath.Join(folder, name))}}
	}
	config.ListenClientUrls, config.ListenPeerUrls = socket("client"), socket("peer")
	config.EnableGRPCGateway = false
	return folder, nil
}
