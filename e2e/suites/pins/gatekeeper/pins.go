//go:build pins

package gatekeeper

import (
	_ "github.com/open-policy-agent/gatekeeper/v3/pkg/cachemanager"
	_ "github.com/open-policy-agent/gatekeeper/v3/pkg/controller/config"
	_ "github.com/open-policy-agent/gatekeeper/v3/pkg/controller/constrainttemplate"
	_ "github.com/open-policy-agent/gatekeeper/v3/pkg/controller/syncset"
	_ "github.com/open-policy-agent/gatekeeper/v3/pkg/readiness"
	_ "github.com/open-policy-agent/gatekeeper/v3/pkg/watch"
	_ "github.com/open-policy-agent/gatekeeper/v3/test/testutils"
	_ "github.com/tributary-go/tributary/controllerruntime"
)
