package sharing

// Every bound of the package stands here, with its subject and its unit.

// limits are the bounds that tests change.
type limits struct {
	objects int // of a generation, at least: twice the longest list, if that is more
	bytes   int // of a generation, at least: an eighth of the collection, if that is more
	most    int // bytes of a generation, whatever the list
	follow  int // bytes of an object whose last state is noted, at least
	share   int // percent of an object that must be found for the object to count as found
	early   int // bytes of the first objects of a kind, which are decoded plainly

	// One for each layer of "the same", which is off at zero (follow: at the largest number):
	// BenchmarkLayers has a figure for each.
	part   int // bytes of wire that a value of the memo stands for: see maxPart
	recent int // bytes of a value that is kept in its place
	alike  int // bytes of a JSON object that is held beside the next one
	notes  int // of an object
}

// defaultLimits: an object below 1 KiB is decoded sooner than followed. The pods of one node leave
// less than 256 KiB. 50,000 pods leave 128 MiB if each ReplicaSet has three of them.
var defaultLimits = limits{objects: 4096, bytes: 256 << 10, most: 128 << 20, follow: 1 << 10, share: 12,
	part: maxPart, recent: maxPart, alike: 64 << 10, notes: 48}

// generation is the bytes of a generation of collections of so many.
func (l limits) generation(bytes int) int { return min(max(l.bytes, bytes/8), l.most) }

// FirstBytes are the bytes of the first objects of a kind, which are decoded plainly: to share pods
// costs 230 KB once, as much as nine of them. Tests that share from the first one set it to 0.
var FirstBytes = 128 << 10

// recents is the bytes beside the recent values of a decoder, of collections of so many: none in
// small ones, whose values are all in the memo.
func (l limits) recents(bytes int) int {
	if bytes < 8*l.early {
		return 0
	}
	return min(max(minRecentBytes, bytes/recentPart), maxRecentBytes)
}

// The values of a memo.
const (
	// maxPart is the most bytes of wire that a remembered value stands for. Larger parts belong to
	// one object, such as the data of a ConfigMap, or have smaller parts that are found themselves.
	maxPart     = 4 << 10
	maxArrived  = 8 << 20 // bytes of a generation while the size of the collection is not known
	arrivedPart = 8       // of what arrived before a first list ended: a kind is told so much more
	maxLate     = 1 << 9  // objects by which a generation is longer while others decode
	entryBytes  = 64      // the estimate of an entry beside its value
	minRoom     = 1       // entries of the smallest table: fields of few objects have one value
	doubledRoom = 1 << 8  // entries up to which a table doubles; a larger one grows by half
	minFilter   = 1 << 8  // keys that were met, 4 bytes each
	someFilter  = 1 << 12 // for a collection of fewBytes and more: those of ten Nodes are 600
	maxFilter   = 1 << 15
	fewBytes    = 64 << 10
	filterPart  = 1 << 10 // bytes of the collection for one such key
)

// The habit of a place.
const (
	trial = 64 // look-ups before a place is judged
	// trialObjects are the objects of these look-ups, at least, unless there are longTrial
	// look-ups: the first list of 50 images finds none of them, and the second one few.
	trialObjects = 16
	longTrial    = 1 << 10
	worth        = 4  // it must find one in so many
	restShare    = 32 // look-ups for which it rests at first, for each of the trial
	lastRest     = 1 << 17
)

// A decoder.
const (
	maxIdle  = 4       // decoders that are kept, one for each core; others are garbage
	maxNames = 1 << 15 // bytes of the names of members and labels
	maxName  = 1 << 9  // bytes of one: a label's has 317 at most

	// The bytes of wire beside recent values are a part of the collection's, within bounds. When
	// there are more, the decoder begins anew.
	recentPart     = 64
	minRecentBytes = 64 << 10
	maxRecentBytes = 1 << 20
)

// Protobuf.
const (
	highest      = 1 << 10  // field number that is taken apart; the types of the API end at 43
	worthMessage = 16       // bytes of a message that is looked up: a smaller one is decoded sooner
	worthRun     = 8        // bytes of a run that is looked up
	worthPointer = 3        // bytes of a message behind a pointer that is looked up
	maxRecent    = 8        // recent values of a part: elements are told apart by position
	maxNodes     = 1 << 12  // of one decoder
	maxArray     = 64       // elements of an array with its own type; others cost 24 bytes more
	maxGivenUp   = 64 << 10 // bytes of an object that is left to the generated code: see object
)

// The last states of objects, and their notes.
const (
	minNoted      = 48       // bytes of a part: a smaller one is compared faster than hashed
	maxNotedBytes = 64 << 10 // a larger part is compared as fast
	maxNotedList  = 16       // elements of a list: notes of more would take as much memory as they
	notedAnew     = 16       // one change in so many also compares parts that differed last time
	inFull        = 32       // one change in so many uses the memo alone: shared values stay in it
)

// JSON.
const (
	maxJSONFields = 64      // members of a type that is taken apart, one bit each; PodSpec has 42
	maxElements   = 64      // of one array that have places of their own
	maxPlaces     = 1 << 12 // of one type
	maxBounds     = 1 << 10 // elements of an array whose bounds are kept
)

// Unstructured objects.
const (
	maxTreeSites = 1 << 12 // of a decoder: schemas have some hundreds of paths
	maxMembers   = 1 << 8  // of an object: more are data, not a schema
	maxOrder     = 32      // members whose order is kept
	maxSize      = 64      // members or elements for which room is made at once
	minShared    = 3       // bytes: "" and {} cost nothing, small numbers neither
	minMember    = 5       // bytes: "":0,
	minElement   = 2       // bytes: 0,
)
