package heap

import (
	"math/bits"
	"reflect"
	"slices"
	"sync"
	"time"
)

// classes are the allocator's sizes. Beyond, it gives whole pages.
var classes = [...]uint16{
	8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 288, 320, 352, 384, 416, 448, 480, 512,
	576, 640, 704, 768, 896, 1024, 1152, 1280, 1408, 1536, 1792, 2048, 2304, 2688, 3072, 3200, 3456, 4096, 4864, 5120, 5376,
	6144, 6528, 6784, 6912, 8192, 9472, 9728, 10240, 10880, 12288, 13568, 14336, 16384, 18432, 19072, 20480, 21760, 24576,
	27264, 28672, 32768,
}

const page = 8 << 10

// classOf returns the memory that a block of that size takes.
func classOf(size uintptr) uint64 {
	if i, _ := slices.BinarySearch(classes[:], uint16(min(size, 1<<16-1))); i < len(classes) {
		return uint64(classes[i])
	}
	return (uint64(size) + page - 1) / page * page
}

const (
	mapHead   = 48 // of every map
	tableHead = 32 // of each table of a map beyond one group
	slots     = 8  // of a group
	maxTable  = 1024
)

// mapSize is the memory of a map with that many entries, as Go's maps grow since 1.24: a group of
// eight slots, or tables that are full to seven eighths at most.
func mapSize(of reflect.Type, entries int) uintptr {
	if entries == 0 {
		return mapHead
	}
	slot := align(align(of.Key().Size(), of.Elem())+of.Elem().Size(), of.Key())
	group := 8 + slots*slot
	if entries <= slots {
		return mapHead + uintptr(classOf(group))
	}
	room := uintptr(1) << bits.Len(uint((entries*8+6)/7-1)) // slots, a power of two
	tables := max(1, room/maxTable)
	return mapHead + room/slots*group + tables*(tableHead+8)
}

// align rounds a size up for a value of a type behind it.
func align(size uintptr, of reflect.Type) uintptr {
	to := uintptr(of.Align())
	return (size + to - 1) / to * to
}

var (
	locationType = reflect.TypeFor[*time.Location]() // of the process
	treeType     = reflect.TypeFor[map[string]any]()
)

var plans sync.Map // by reflect.Type: the fields that refer to other memory, of a struct

// fieldsOf returns the fields of a struct that refer to other memory.
func fieldsOf(of reflect.Type) []int {
	if known, ok := plans.Load(of); ok {
		return known.([]int)
	}
	var fields []int
	for i := range of.NumField() {
		if refers(of.Field(i).Type) {
			fields = append(fields, i)
		}
	}
	plans.Store(of, fields)
	return fields
}

// refers reports whether values of a type refer to other memory.
func refers(of reflect.Type) bool {
	switch of.Kind() {
	case reflect.String, reflect.Pointer, reflect.Slice, reflect.Interface, reflect.Map:
		return of != locationType
	case reflect.Array:
		return of.Len() > 0 && refers(of.Elem())
	case reflect.Struct:
		return len(fieldsOf(of)) > 0
	}
	return false
}
