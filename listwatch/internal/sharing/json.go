package sharing

type jsonPlan struct{}
type treeDecoder struct{}
