//go:build faults

// Command member is an etcd with faults built in: failpoints, a wall clock that can be set, and
// files that cannot grow. GOFAIL_HTTP is the address that sets failpoints, FAULTS_HTTP that of the
// other faults. It is built as build_test.go does it, and in no other way.
package main

import (
	"io"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"time"

	_ "go.etcd.io/gofail/runtime"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"go.etcd.io/etcd/server/v3/storage/wal"
)

func main() {
	wal.SegmentSizeBytes = 1 << 20 // many segments, in place of one of 64 MB
	http.HandleFunc("/clock", taking(func(by string) error {
		d, err := time.ParseDuration(by)
		if err == nil {
			time.Jump(d)
		}
		return err
	}))
	// A write past the limit fails, as on a full disk. Go ignores the signal that comes with it.
	http.HandleFunc("/limit", taking(func(bytes string) error {
		n, err := strconv.ParseUint(bytes, 10, 64)
		if err != nil {
			return err
		}
		return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: n})
	}))
	go func() { panic(http.ListenAndServe(os.Getenv("FAULTS_HTTP"), nil)) }()
	etcdmain.Main(os.Args)
}

// taking answers requests by a function of their body.
func taking(do func(body string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = do(string(body))
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	}
}
