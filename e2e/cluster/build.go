package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// binaries are the paths of the built servers.
type binaries struct{ etcd, apiServer string }

const (
	etcdPackage      = "go.etcd.io/etcd/server/v3"
	apiServerPackage = "k8s.io/kubernetes/cmd/kube-apiserver"
	kubectlPackage   = "k8s.io/kubernetes/cmd/kubectl"
	kubernetesModule = "k8s.io/kubernetes"
)

// build returns the servers from the cache, or builds them into it: about six minutes on two cores.
// Processes that build at the same time wait for each other.
func build(logf func(string, ...any)) (binaries, error) {
	module, cache, unlock, err := workshop()
	if err != nil {
		return binaries{}, err
	}
	defer unlock()
	etcd, err := buildOne(module, cache, "etcd", etcdPackage, etcdPackage, logf)
	if err != nil {
		return binaries{}, err
	}
	apiServer, err := buildOne(module, cache, "kube-apiserver", apiServerPackage, kubernetesModule, logf)
	return binaries{etcd: etcd, apiServer: apiServer}, err
}

// Build returns the paths of the servers, for a program that starts them itself. It builds what is
// not yet in the cache, and tells logf of it: that takes minutes.
func Build(logf func(string, ...any)) (etcd, apiServer string, err error) {
	built, err := build(logf)
	return built.etcd, built.apiServer, err
}

// Kubectl returns the path of a kubectl of the API server's release. It builds it into the cache
// the first time, which takes a minute, and skips the test under -short.
func Kubectl(t testing.TB) (binary string) {
	t.Helper()
	if testing.Short() {
		t.Skip("may have to build kubectl: not under -short")
	}
	module, cache, unlock, err := workshop()
	require.NoError(t, err)
	defer unlock()
	binary, err = buildOne(module, cache, "kubectl", kubectlPackage, kubernetesModule, t.Logf)
	require.NoError(t, err, "build kubectl")
	return binary
}

// BuildTributary builds cmd/tributary of this repository into a folder.
func BuildTributary(folder string) (binary string, err error) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tributary-go/tributary").Output()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	binary = filepath.Join(folder, "tributary")
	source := filepath.Join(strings.TrimSpace(string(root)), "cmd", "tributary")
	if out, err := exec.Command("go", "build", "-C", source, "-o", binary, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build tributary: %w: %s", err, out)
	}
	return binary, nil
}

// PodSource builds the command in servers/podsource, the kubelet's own pod sources, and returns its
// path. It takes minutes the first time, and skips the test under -short.
func PodSource(t testing.TB) (binary string) {
	t.Helper()
	return kubeletPart(t, "podsource")
}

// Release is a minor release of Kubernetes whose kubelet has the PodsAPI.
type Release string

// The releases that PodsAPI can build.
const (
	Kube136 Release = "1.36"
	Kube137 Release = "1.37"
)

// PodsAPI builds the command in servers/podsapi, the PodsAPI of a release's own kubelet, as
// PodSource does.
func PodsAPI(t testing.TB, of Release) (binary string) {
	t.Helper()
	if of == Kube137 {
		return kubeletPart(t, "podsapi", "-modfile=kube137.mod", "-tags=kube137")
	}
	return kubeletPart(t, "podsapi")
}

// PodsURL builds the command in servers/podsurl, the kubelet's own /pods, as PodSource does.
func PodsURL(t testing.TB) (binary string) {
	t.Helper()
	return kubeletPart(t, "podsurl")
}

func kubeletPart(t testing.TB, name string, flags ...string) (binary string) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds a part of the kubelet: not under -short")
	}
	module, _, unlock, err := workshop()
	require.NoError(t, err)
	defer unlock()
	binary = filepath.Join(t.TempDir(), name)
	build := append([]string{"build", "-trimpath", "-ldflags=-s -w", "-o", binary}, flags...)
	_, err = Go(module, append(build, "./"+name)...)
	require.NoError(t, err, "build the kubelet's %s", name)
	return binary
}

// workshop is the module to build from, and the folder to build into, which is the caller's until
// unlock.
func workshop() (module, cache string, unlock func(), err error) {
	if module, err = serversModule(); err != nil {
		return "", "", nil, err
	}
	if cache, err = os.UserCacheDir(); err != nil {
		return "", "", nil, fmt.Errorf("find the cache folder: %w", err)
	}
	cache = filepath.Join(cache, "tributary-e2e")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", "", nil, fmt.Errorf("make the cache folder: %w", err)
	}
	unlock, err = lock(filepath.Join(cache, "lock"))
	return module, cache, unlock, err
}

// buildOne builds a package of the given module unless the cache has it. What is in the cache is
// whole: it is renamed into place.
func buildOne(dir, cache, name, path, module string, logf func(string, ...any)) (string, error) {
	version, err := Go(dir, "list", "-m", "-f", "{{.Version}}", module)
	if err != nil {
		return "", err
	}
	return cached(cache, name+"-"+strings.TrimSpace(version), logf, func(into string) error {
		_, err := Go(dir, "build", "-trimpath", "-ldflags=-s -w", "-o", into, path)
		return err
	})
}

// Cached returns the path of a binary in the cache of the servers. If there is none of that name,
// build makes it, while other processes wait. The name must change with the binary's sources. Under
// -short the test is skipped.
func Cached(t testing.TB, name string, build func(into string) error) (binary string) {
	t.Helper()
	if testing.Short() {
		t.Skip("may have to build " + name + ": not under -short")
	}
	_, cache, unlock, err := workshop()
	require.NoError(t, err)
	defer unlock()
	binary, err = cached(cache, name, t.Logf, build)
	require.NoError(t, err)
	return binary
}

func cached(cache, name string, logf func(string, ...any), build func(into string) error) (string, error) {
	name = strings.Join([]string{name, runtime.GOOS, runtime.GOARCH}, "-")
	binary := filepath.Join(cache, name)
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	logf("building %s: this takes minutes, once", name)
	began := time.Now()
	unfinished := binary + ".unfinished"
	if err := build(unfinished); err != nil {
		return "", err
	}
	if err := os.Rename(unfinished, binary); err != nil {
		return "", fmt.Errorf("keep %s: %w", name, err)
	}
	logf("built %s in %s", binary, time.Since(began).Round(time.Second))
	return binary, nil
}

// Go runs the go command in a folder and returns its output. It has a low priority, since a build
// takes every core.
func Go(dir string, arguments ...string) (string, error) {
	command := exec.Command("go", arguments...)
	if nice, err := exec.LookPath("nice"); err == nil {
		command = exec.Command(nice, append([]string{"go"}, arguments...)...)
	}
	command.Dir = dir
	command.Env = append(os.Environ(), "GOWORK=off", "PWD="+dir)
	output, err := command.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return "", fmt.Errorf("go %s: %w: %s", strings.Join(arguments, " "), err, failed.Stderr)
	}
	return string(output), err
}

// serversModule finds the module that pins the servers' versions: tests run in their package's
// folder, somewhere in the module beside it.
func serversModule() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := folder; at != filepath.Dir(at); at = filepath.Dir(at) {
		module := filepath.Join(at, "servers")
		if _, err := os.Stat(filepath.Join(module, "go.mod")); err == nil {
			return module, nil
		}
	}
	return "", fmt.Errorf("no folder servers with a go.mod in or above %s", folder)
}

// lock takes the lock file at path, waiting for whoever has it. It is free again when its holder
// dies.
func lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the build lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("take the build lock: %w", err), file.Close())
	}
	return func() { _ = file.Close() }, nil // closing it releases the lock
}
