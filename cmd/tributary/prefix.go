package main

import (
	"context"
	"errors"
	"fmt"
	"path"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// clusterPrefix is where kube-apiserver keeps its keys, unless its --etcd-prefix says other.
	clusterPrefix = "/registry"
	// ownPrefix is another, so that no server by chance writes into a cluster.
	ownPrefix = "/tributary"
	// compaction is where kube-apiserver notes that it compacts its etcd, below no prefix.
	compaction = "compact_rev_key"
)

// clusterFolders are written by kube-apiserver at its start, below its prefix, and never by this
// program.
var clusterFolders = []string{"apiregistration.k8s.io/", "masterleases/", "peerserverleases/", "ranges/"}

// settlePrefix completes --etcd-prefix, and refuses to write where kube-apiserver does.
func settlePrefix(ctx context.Context, o options, from origin) (prefix string, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	if prefix = o.prefix; prefix == "" {
		prefix, err = defaultPrefix(ctx, o.readOnly(), from.client)
	}
	found := ""
	if err == nil && !o.readOnly() && !o.writeAnyway {
		found, err = clusterKey(ctx, from.client, path.Join("/", prefix))
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", from.name, err)
	}
	if found != "" {
		return "", fmt.Errorf("%s has the key %s, as a Kubernetes cluster's own etcd has: a write that kube-apiserver has not checked can break the cluster. "+
			"Read it with --registry; or take another --etcd-prefix, such as %s; or give --write-anyway", from.name, found, ownPrefix)
	}
	return prefix, nil
}

// defaultPrefix is that of a cluster if nothing is written, unless there is only ours.
func defaultPrefix(ctx context.Context, readOnly bool, client *clientv3.Client) (string, error) {
	if !readOnly {
		return ownPrefix, nil
	}
	for _, prefix := range []string{clusterPrefix, ownPrefix} {
		found, err := firstKey(ctx, client, prefix+"/", clientv3.WithPrefix())
		if found != "" || err != nil {
			return prefix, err
		}
	}
	return clusterPrefix, nil
}

// clusterKey finds a key of kube-apiserver's below a prefix, or below one that contains it.
func clusterKey(ctx context.Context, client *clientv3.Client, prefix string) (string, error) {
	for below := prefix; ; below = path.Dir(below) {
		for _, folder := range clusterFolders {
			found, err := firstKey(ctx, client, path.Join(below, folder)+"/", clientv3.WithPrefix())
			if found != "" || err != nil {
				return found, err
			}
		}
		if below == clusterPrefix {
			for _, key := range []string{clusterPrefix + "/namespaces/kube-system", compaction} {
				if found, err := firstKey(ctx, client, key); found != "" || err != nil {
					return found, err
				}
			}
		}
		if below == "/" {
			return "", nil
		}
	}
}

// firstKey is the first of some keys, or empty. If etcd lets its user read no such key, it lets
// the user write none.
func firstKey(ctx context.Context, client *clientv3.Client, key string, options ...clientv3.OpOption) (string, error) {
	answer, err := client.Get(ctx, key, append(options, clientv3.WithKeysOnly(), clientv3.WithLimit(1))...)
	switch {
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read %s: %w", key, err)
	case len(answer.Kvs) == 0:
		return "", nil
	}
	return string(answer.Kvs[0].Key), nil
}
