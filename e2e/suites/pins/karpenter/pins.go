//go:build pins

package karpenter

import (
	_ "github.com/tributary-go/tributary/controllerruntime"
	_ "sigs.k8s.io/karpenter/pkg/controllers/node/health"
	_ "sigs.k8s.io/karpenter/pkg/controllers/node/termination"
	_ "sigs.k8s.io/karpenter/pkg/controllers/nodeclaim/lifecycle"
	_ "sigs.k8s.io/karpenter/pkg/test"
	_ "sigs.k8s.io/karpenter/pkg/test/expectations"
)
