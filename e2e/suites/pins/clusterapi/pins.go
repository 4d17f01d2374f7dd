//go:build pins

package clusterapi

import (
	_ "github.com/tributary-go/tributary/controllerruntime"
	_ "sigs.k8s.io/cluster-api/controllers/clustercache"
	_ "sigs.k8s.io/cluster-api/core/reconcilers/machinedeployment"
	_ "sigs.k8s.io/cluster-api/core/reconcilers/machineset"
)
