package backup

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
)

// Backup is an open backup file. [Open] makes one. It is safe for concurrent use.
type Backup struct {
	db       *bbolt.DB
	keys     []entry // sorted by key
	revision int64

	server *grpc.Server
	client *clientv3.Client
	served chan struct{} // closed when the server has ended
}

// entry is a key of the newest revision.
type entry struct {
	key string
	at  mvcc.Revision // of its value
}

// DamageError is a backup that cannot be used as a whole.
type DamageError struct {
	// Path is the file.
	Path string
	// Revision is the newest revision up to which the file can be read; zero if there is none.
	Revision int64
	// Newest is the newest revision that the file names behind the damage; zero if none can be
	// found. A backup of [Salvage] lacks the writes after Revision.
	Newest int64
	// Err is the fault.
	Err error
}

// Error names the file, the damage, and how far the file can be read.
func (e *DamageError) Error() string {
	if e.Revision == 0 {
		return fmt.Sprintf("backup %s is damaged: %v: nothing in it can be read", e.Path, e.Err)
	}
	return fmt.Sprintf("backup %s is damaged: %v: it can be read up to revision %d; %s", e.Path, e.Err, e.Revision, e.missing())
}

// missing names the revisions that Salvage cannot read.
func (e *DamageError) missing() string {
	switch {
	case e.Newest > e.Revision:
		return fmt.Sprintf("the writes of the revisions %d to %d are missing", e.Revision+1, e.Newest)
	case e.Newest == e.Revision:
		return "no write is known to be missing, but a value may have become another one"
	}
	return "the writes after it are missing, and it is not known how many there were"
}

// Unwrap returns the damage.
func (e *DamageError) Unwrap() error { return e.Err }

// lockPatience is how long a database may be locked by the etcd that writes to it.
const lockPatience = time.Second

// Open reads a backup file to its end. Errors: a [DamageError]; an error of the operating system;
// a timeout for the database of an etcd that is running.
func Open(path string) (*Backup, error) {
	b, damage, err := read(path)
	if damage != nil {
		b.abandon()
		return nil, damage
	}
	if err != nil {
		return nil, err
	}
	return b, b.serve(path)
}

// Salvage is [Open] for a file that may be damaged: it reads as far as it can. Damage is nil if the
// file is whole, and else names the revisions that are missing. It fails as Open does, and with the
// damage if nothing can be read.
func Salvage(path string) (b *Backup, damage *DamageError, err error) {
	b, damage, err = read(path)
	if damage != nil && damage.Revision == 0 {
		b.abandon()
		return nil, nil, damage
	}
	if err != nil {
		return nil, nil, err
	}
	if err := b.serve(path); err != nil {
		return nil, nil, err
	}
	return b, damage, nil
}

// read reads a file as far as it is whole.
func read(path string) (*Backup, *DamageError, error) {
	fault, err := checkHash(path)
	if err != nil {
		return nil, nil, fmt.Errorf("backup %s: %w", path, err)
	}
	b := &Backup{served: make(chan struct{})}
	err = guarded(func() (err error) {
		b.db, err = bbolt.Open(path, 0, &bbolt.Options{ReadOnly: true, Timeout: lockPatience})
		return err
	})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, nil, fmt.Errorf("backup %s: an etcd has it open: stop that, or save a snapshot of it: %w", path, err)
	}
	if err == nil {
		err = b.follow(path)
	}
	found := state{latest: map[string]mvcc.Revision{}}
	if err == nil {
		err = guarded(func() error { return b.scan(&found) })
	}
	if err == nil {
		found.settle()
	}
	b.take(&found)
	if err == nil && fault == nil {
		err = guarded(b.compacted)
	}
	if fault = cmp.Or(fault, err); fault == nil {
		return b, nil, nil
	}
	return b, &DamageError{Path: path, Revision: b.revision, Newest: b.newest(), Err: fault}, nil
}

// follow closes a file of which a page leads back to itself: nothing in it can be read.
func (b *Backup) follow(path string) error {
	file, err := os.Open(path)
	if err == nil {
		defer file.Close()
		err = guarded(func() error { return checkPages(b.db, file) })
	}
	if err != nil {
		b.abandon()
		b.db = nil
	}
	return err
}

// newest is the newest revision that stands in the file, whether it can be reached by reading or
// not; zero if none can be found.
func (b *Backup) newest() (revision int64) {
	if b.db == nil {
		return 0
	}
	_ = guarded(func() error { // an error leaves zero
		return b.db.View(func(tx *bbolt.Tx) error {
			if name, _ := tx.Bucket(schema.Key.Name()).Cursor().Last(); name != nil {
				revision = mvcc.BytesToRev(name).Main
			}
			return nil
		})
	})
	return revision
}

// abandon closes a file that is not served.
func (b *Backup) abandon() {
	if b.db != nil {
		_ = b.db.Close()
	}
}

// Client reads the backup as it would read an etcd. It is closed with the backup.
func (b *Backup) Client() *clientv3.Client { return b.client }

// Revision is the newest revision in the file: the state at it is read.
func (b *Backup) Revision() int64 { return b.revision }

// Close ends the client and closes the file.
func (b *Backup) Close() error {
	err := b.client.Close()
	b.server.Stop()
	<-b.served
	return errors.Join(err, b.db.Close())
}

// block is the unit of the size of etcd's databases, without the hash behind them.
const block = 512

// checkHash compares a saved snapshot with the SHA-256 at its end, which etcd puts there.
func checkHash(path string) (damage, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	content := info.Size() - sha256.Size
	switch {
	case info.IsDir():
		return nil, errors.New("it is a folder: name the file in it, such as member/snap/db of an etcd")
	case info.Size() == 0:
		return nil, errors.New("it is empty: see if the program that saved it has failed, or the disk was full")
	}
	switch info.Size() % block {
	case 0: // a copy of a database
		return nil, nil
	case sha256.Size:
	default:
		return errors.New("it has been cut off, or something has been appended"), nil
	}
	hash, want := sha256.New(), make([]byte, sha256.Size)
	if _, err := io.CopyN(hash, file, content); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(file, want); err != nil {
		return nil, err
	}
	if !bytes.Equal(hash.Sum(nil), want) {
		return errors.New("its content does not have the SHA-256 that stands at its end"), nil
	}
	return nil, nil
}

// guarded turns the panics of a damaged file into errors: bbolt panics on a page that contradicts
// itself, and memory behind the file's end cannot be read.
func guarded(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil { // the reason may quote a key
			err = errors.New("a page of it contradicts another one, or is missing")
		}
	}()
	return do()
}

// scan reads every revision in order, and keeps which keys the newest one has.
func (b *Backup) scan(state *state) error {
	return b.db.View(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket(schema.Key.Name())
		if bucket == nil {
			return errors.New("it is not a database of etcd")
		}
		return bucket.ForEach(func(name, value []byte) error {
			at, deletion, last := mvcc.BytesToRev(name), mvcc.IsTombstone(name), state.last
			if !at.GreaterThan(last) {
				return fmt.Errorf("revision %d stands behind %d", at.Main, last.Main)
			}
			if at.Main > last.Main {
				state.settle() // a revision below another one is none by damage
			}
			var kv mvccpb.KeyValue
			err := proto.Unmarshal(value, &kv)
			switch {
			case err != nil || len(kv.Key) == 0 || !deletion && kv.ModRevision != at.Main:
				return fmt.Errorf("the value behind revision %d cannot be decoded", last.Main)
			case !bytes.Equal(bucket.Get(name), value): // on the way that a request takes
				return fmt.Errorf("the value behind revision %d cannot be found by its revision", last.Main)
			}
			state.changes = append(state.changes, change{entry{string(kv.Key), at}, deletion})
			state.last = at
			return nil
		})
	})
}

// state holds the revisions that have been read whole, and the changes of the one after them.
type state struct {
	latest  map[string]mvcc.Revision // of each key
	whole   int64                    // the newest whole revision
	last    mvcc.Revision
	changes []change // of last
}

type change struct {
	entry
	deletion bool
}

// settle takes the newest revision into the state: all of it has been read.
func (s *state) settle() {
	for _, c := range s.changes {
		if c.deletion {
			delete(s.latest, c.key)
		} else {
			s.latest[c.key] = c.at
		}
	}
	s.changes, s.whole = s.changes[:0], s.last.Main
}

// take makes a state the content.
func (b *Backup) take(s *state) {
	b.revision = s.whole
	for key, at := range s.latest {
		b.keys = append(b.keys, entry{key, at})
	}
	slices.SortFunc(b.keys, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
}

// compacted takes the revision of a compaction that is newer than all that is left.
func (b *Backup) compacted() error {
	return b.db.View(func(tx *bbolt.Tx) error {
		meta := tx.Bucket(schema.Meta.Name())
		if meta == nil {
			return errors.New("it is not a database of etcd")
		}
		for _, name := range [][]byte{schema.FinishedCompactKeyName, schema.ScheduledCompactKeyName} {
			if revision := meta.Get(name); revision != nil {
				b.revision = max(b.revision, mvcc.BytesToRev(revision).Main)
			}
		}
		return nil
	})
}

// pipe is how many bytes are on the way between client and server at most.
const pipe = 1 << 20

// serve answers the client from the file.
func (b *Backup) serve(path string) (err error) {
	listener := bufconn.Listen(pipe)
	b.server = grpc.NewServer()
	register(b.server, b)
	go func() {
		defer close(b.served)
		_ = b.server.Serve(listener) // it ends with Stop
	}()
	b.client, err = clientv3.New(clientv3.Config{
		Endpoints: []string{"http://backup"}, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		},
	})
	if err != nil {
		b.server.Stop()
		<-b.served
		return errors.Join(fmt.Errorf("backup %s: %w", path, err), b.db.Close())
	}
	return nil
}
