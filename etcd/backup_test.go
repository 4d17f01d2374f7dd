package etcd_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/etcd"
	"github.com/tributary-go/tributary/etcd/backup"
	"github.com/tributary-go/tributary/listwatch"
)

// history writes pods, changes and deletes them, with other keys before and after them.
func history(t testing.TB, client *clientv3.Client) {
	t.Helper()
	putValue(t, client, "/registry/configmaps/ns/a", []byte("{}"))
	for i := range 120 {
		put(t, client, pod(fmt.Sprintf("pod-%03d", i)))
	}
	for i := range 40 {
		put(t, client, pod(fmt.Sprintf("pod-%03d", i), labelled("round", "2")))
		remove(t, client, keyOf(pod(fmt.Sprintf("pod-%03d", i+60))))
	}
	putValue(t, client, "/registry/podtemplates/ns/a", []byte("{}"))
}

// snapshot is what etcdctl snapshot save writes.
func snapshot(t testing.TB, client *clientv3.Client) (path string) {
	t.Helper()
	content, err := client.Snapshot(t.Context())
	require.NoError(t, err)
	defer content.Close()
	data, err := io.ReadAll(content)
	require.NoError(t, err)
	return saved(t, data)
}

func saved(t testing.TB, data []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "backup.db")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

func open(t testing.TB, path string) *backup.Backup {
	t.Helper()
	b, err := backup.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

// TestBackupIsTheState: a backup reads as its etcd did, in one piece and in pages, and the file
// stays as it is.
func TestBackupIsTheState(t *testing.T) {
	server := start(t)
	client := connect(t, clientv3.Config{}, server)
	history(t, client)
	live := etcd.New[corev1.Pod](client, pods)
	want, wantMeta := read(t, live.List(t.Context(), metav1.ListOptions{}))
	require.Len(t, want, 80)
	path := snapshot(t, client)
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	put(t, client, pod("later"))

	b := open(t, path)
	require.Equal(t, wantMeta.ResourceVersion, at(b.Revision()))
	source := etcd.New[corev1.Pod](b.Client(), pods)
	got, meta := read(t, source.List(t.Context(), metav1.ListOptions{}))
	require.Equal(t, want, got)
	require.Equal(t, wantMeta, meta)
	options := metav1.ListOptions{Limit: 7}
	for got = nil; ; {
		page, meta := read(t, source.List(t.Context(), options))
		got = append(got, page...)
		if options.Continue = meta.Continue; options.Continue == "" {
			break
		}
	}
	require.Equal(t, want, got)

	older := metav1.ListOptions{ResourceVersion: at(b.Revision() - 1), ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	_, _, err = tryRead(source.List(t.Context(), older))
	require.True(t, apierrors.IsResourceExpired(err), "%v", err)
	_, err = b.Client().Put(t.Context(), pods+"ns/new", "{}")
	require.ErrorContains(t, err, "Unimplemented")
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(before, after), "a backup is not written to")
}

// TestBackupIsFollowed: a reflector's watch of a backup is alive and brings nothing, and one from
// before is told to list again.
func TestBackupIsFollowed(t *testing.T) {
	client := connect(t, clientv3.Config{}, start(t))
	history(t, client)
	b := open(t, snapshot(t, client))
	source := etcd.New[corev1.Pod](b.Client(), pods, etcd.WithProgressEvery(time.Millisecond))
	now := at(b.Revision())
	for range 3 {
		f := watchFrom(t, source, metav1.ListOptions{ResourceVersion: now, AllowWatchBookmarks: true})
		require.Equal(t, "BOOKMARK "+now, seen(f.next()))
		require.Equal(t, "BOOKMARK "+now, seen(f.next()))
	}
	f := watchFrom(t, source, metav1.ListOptions{ResourceVersion: at(b.Revision() - 1)})
	require.True(t, apierrors.IsResourceExpired(f.failure()))
}

// TestBackupOfACompactedEtcd: the newest revision may have left nothing but the record of its
// compaction, since older servers drop the deletion that they are compacted at.
func TestBackupOfACompactedEtcd(t *testing.T) {
	server := start(t)
	client := connect(t, clientv3.Config{}, server)
	put(t, client, pod("a"))
	put(t, client, pod("b"))
	last := remove(t, client, keyOf(pod("b")))
	compact(t, client, last)
	server.Close()
	file := filepath.Join(server.Config().Dir, "member", "snap", "db")
	db, err := bbolt.Open(file, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		revisions := tx.Bucket([]byte("key"))
		newest, _ := revisions.Cursor().Last()
		return revisions.Delete(newest)
	}))
	require.NoError(t, db.Close())
	b := open(t, file)
	require.Equal(t, last, b.Revision())
	got, _ := read(t, etcd.New[corev1.Pod](b.Client(), pods).List(t.Context(), metav1.ListOptions{}))
	require.Equal(t, []string{"a"}, names(got))
}

// TestCopyOfADatabase: a member's own file can be read, once its etcd has ended.
func TestCopyOfADatabase(t *testing.T) {
	server := start(t)
	client := connect(t, clientv3.Config{}, server)
	history(t, client)
	file := filepath.Join(server.Config().Dir, "member", "snap", "db")
	_, err := backup.Open(file)
	require.ErrorContains(t, err, "an etcd has it open")
	server.Close()
	b := open(t, file)
	got, _ := read(t, etcd.New[corev1.Pod](b.Client(), pods).List(t.Context(), metav1.ListOptions{}))
	require.Len(t, got, 80)
}

// TestABackupThatLeadsBackToItself: bbolt would follow a page that is below itself until memory is
// over.
func TestABackupThatLeadsBackToItself(t *testing.T) {
	client := connect(t, clientv3.Config{}, start(t))
	history(t, client)
	whole, err := os.ReadFile(snapshot(t, client))
	require.NoError(t, err)
	found, size := 0, os.Getpagesize()
	for at := 0; at+size < len(whole); at += size {
		if binary.LittleEndian.Uint16(whole[at+8:]) != 1 { // a branch
			continue
		}
		for i := range int(binary.LittleEndian.Uint16(whole[at+10:])) {
			data := bytes.Clone(whole[:len(whole)-32]) // it has no hash
			copy(data[at+16+16*i+8:], data[at:at+8])   // the page's own number
			b, _, err := backup.Salvage(saved(t, data))
			if err == nil { // no page leads to this branch any more
				require.NoError(t, b.Close())
				continue
			}
			found++
			require.ErrorAs(t, err, new(*backup.DamageError))
			require.ErrorContains(t, err, "a page of it leads back to itself: nothing in it can be read")
		}
	}
	require.Positive(t, found)
}

// TestDamagedBackups: whatever happens to a saved file is an error that says how far the file can
// be read.
func TestDamagedBackups(t *testing.T) {
	client := connect(t, clientv3.Config{}, start(t))
	history(t, client)
	newest, err := client.Get(t.Context(), pods)
	require.NoError(t, err)
	whole, err := os.ReadFile(snapshot(t, client))
	require.NoError(t, err)
	damaged := func(data []byte) *backup.DamageError {
		path := saved(t, data)
		_, err := backup.Open(path)
		var damage *backup.DamageError
		require.ErrorAs(t, err, &damage)
		require.Equal(t, path, damage.Path)
		require.LessOrEqual(t, damage.Revision, newest.Header.Revision)
		require.ErrorContains(t, err, path)
		require.NotContains(t, err.Error(), "pod-")
		return damage
	}

	hash := bytes.Clone(whole)
	hash[len(hash)-1]++
	damage := damaged(hash)
	require.ErrorContains(t, damage, "SHA-256")
	require.ErrorContains(t, damage, fmt.Sprintf("up to revision %d", newest.Header.Revision))
	require.Equal(t, newest.Header.Revision, damage.Revision)

	require.ErrorContains(t, damaged(append(bytes.Clone(whole), "more"...)), "appended")
	require.ErrorContains(t, damaged([]byte("no database")), "nothing in it can be read")
	_, err = backup.Open(saved(t, nil))
	require.ErrorContains(t, err, "backup.db: it is empty")
	_, err = backup.Open(t.TempDir())
	require.ErrorContains(t, err, "it is a folder")

	// A value that nobody else refers to: what came before can be read, and nothing else is lost.
	broken := bytes.Clone(whole[:len(whole)-32])
	first, err := client.Get(t.Context(), pods+"ns/pod-100")
	require.NoError(t, err)
	key := append([]byte{0x0a, byte(len(pods) + 10)}, pods+"ns/pod-100"...)
	require.Positive(t, bytes.Count(broken, key))
	broken = bytes.ReplaceAll(broken, key, append([]byte{0x07}, key[1:]...)) // 7 is no wire type
	damage = damaged(broken)
	readable := first.Kvs[0].ModRevision - 1
	require.Equal(t, readable, damage.Revision)
	require.Equal(t, newest.Header.Revision, damage.Newest)
	require.ErrorContains(t, damage, fmt.Sprintf("the writes of the revisions %d to %d are missing", readable+1, newest.Header.Revision))

	part, found, err := backup.Salvage(saved(t, broken))
	require.NoError(t, err)
	require.Equal(t, damage.Newest, found.Newest)
	require.Equal(t, readable, part.Revision())
	got, meta := read(t, etcd.New[corev1.Pod](part.Client(), pods).List(t.Context(), metav1.ListOptions{}))
	require.Equal(t, at(readable), meta.ResourceVersion)
	require.Len(t, got, 100, "the pods that were created before the damage")
	require.NoError(t, part.Close())

	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		data := bytes.Clone(whole)
		for range 1 + random.IntN(3) {
			data[random.IntN(len(data))] ^= byte(1 + random.IntN(255))
		}
		damaged(data)
		damaged(whole[:random.IntN(len(whole)-512)/512*512+100]) // no whole number of blocks
	}
	// Without a hash not all damage can be seen, but none is worse than an error.
	for range 300 {
		data := bytes.Clone(whole[:len(whole)-32])
		start := random.IntN(len(data))
		for i := range data[start:min(start+random.IntN(4096), len(data))] {
			data[start+i] = byte(random.Uint32())
		}
		if random.IntN(2) == 0 {
			data = data[:random.IntN(len(data))/512*512]
		}
		if len(data) == 0 {
			continue
		}
		b, _, err := backup.Salvage(saved(t, data))
		if err != nil {
			require.ErrorAs(t, err, new(*backup.DamageError))
			continue
		}
		for _, err := range etcd.New[corev1.Pod](b.Client(), pods).List(t.Context(), metav1.ListOptions{}).Items {
			if err != nil && !errors.As(err, new(*listwatch.DecodeError)) {
				require.ErrorContains(t, err, "contradicts another one", "%T", err)
				break
			}
		}
		require.NoError(t, b.Close())
	}
}
