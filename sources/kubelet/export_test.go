package kubelet

import "github.com/tributary-go/tributary/sources"

// Source is the source of PodsAPI.
func Source(options ...Option) sources.Source { return &podsAPI{settings: newSettings(options)} }
