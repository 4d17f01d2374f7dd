package suites

// peers are of these versions. The figures are tests that made an informer of ours; on the other
// side client-go's v0.37.2 stands in its place.
var peers = map[string]peer{
	"Kubernetes": {
		pin: pin{"k8s.io/kubernetes", "v1.37.2", nil},
		packages: map[string]sides{
			"pkg/controller":                                  {equal: 1},
			"pkg/controller/bootstrap":                        {equal: 9},
			"pkg/controller/certificates":                     {equal: 1},
			"pkg/controller/certificates/rootcacertpublisher": {equal: 1},
			"pkg/controller/cronjob":                          {equal: 5},
			"pkg/controller/daemon":                           {equal: 76},
			"pkg/controller/deployment":                       {equal: 22},
			"pkg/controller/deployment/util":                  {equal: 1},
			"pkg/controller/devicetainteviction":              {equal: 6},
			"pkg/controller/disruption":                       {equal: 24},
			"pkg/controller/endpoint":                         {equal: 40},
			"pkg/controller/endpointslice":                    {equal: 16},
			"pkg/controller/endpointslicemirroring":           {equal: 3},
			"pkg/controller/garbagecollector":                 {equal: 2},
			"pkg/controller/job":                              {equal: 43},
			"pkg/controller/replicaset":                       {equal: 22},
			"pkg/controller/resourceclaim":                    {equal: 4},
			"pkg/controller/resourcequota":                    {equal: 3},
			"pkg/controller/statefulset":                      {equal: 50},
		},
		first: []string{
			"pkg/controller/replicaset", "pkg/controller/deployment", "pkg/controller/job", "pkg/controller/daemon",
			"pkg/controller/garbagecollector", "pkg/controller/resourcequota", "pkg/controller/endpointslice",
			"pkg/controller/statefulset", "pkg/controller/cronjob", "pkg/controller/resourceclaim",
		},
	},
	"CoreDNS": {
		pin:      pin{"github.com/coredns/coredns", "v1.15.0", nil},
		packages: map[string]sides{"plugin/kubernetes": {equal: 3}},
		first:    []string{"plugin/kubernetes"},
	},
	"DRA": {
		pin: pin{"k8s.io/dynamic-resource-allocation", "v0.37.2", nil},
		packages: map[string]sides{
			"deviceclass/extendedresourcecache": {equal: 2},
			"resourceslice":                     {equal: 3},
			"resourceslice/tracker":             {equal: 1},
		},
		first: []string{"resourceslice/tracker"},
	},
}
