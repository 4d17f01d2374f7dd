package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/tributary-go/tributary/etcd/backup"
)

// origin is where the objects are.
type origin struct {
	client *clientv3.Client
	name   string       // for people
	close  func() error // after the last request
	// advice is the remedy if it does not answer; empty for a backup, which always does.
	advice string
	failed <-chan error // of an etcd in this process
}

// open finds the objects that the flags name.
func open(o options, stderr io.Writer) (origin, error) {
	logger, quiet := etcdLogger(stderr, o.verbosity, o.data)
	switch {
	case o.backup != "":
		return openBackup(o, stderr)
	case len(o.endpoints) > 0:
		return connect(o, logger)
	}
	return start(o.data, logger, quiet)
}

func openBackup(o options, stderr io.Writer) (origin, error) {
	b, damage, err := backup.Salvage(o.backup)
	switch {
	case err != nil:
		return origin{}, err
	case damage != nil && !o.force:
		return origin{}, errors.Join(fmt.Errorf("%w; --force serves what can be read", damage), b.Close())
	}
	name := fmt.Sprintf("the backup %s at revision %d", o.backup, b.Revision())
	if damage != nil {
		name += ", damaged"
		fmt.Fprintf(stderr, "%v\n", damage)
	}
	return origin{client: b.Client(), name: name, close: b.Close}, nil
}

// clientConfig is that of a client of an etcd elsewhere.
func clientConfig(o options, logger *zap.Logger) (clientv3.Config, error) {
	config := clientv3.Config{
		Endpoints: o.endpoints, Username: o.user, Logger: clientLogger(logger),
		DialKeepAliveTime: 30 * time.Second, DialKeepAliveTimeout: 10 * time.Second,
	}
	if o.user != "" {
		config.Password = os.Getenv(passwordVariable)
		config.DialOptions = []grpc.DialOption{grpc.WithChainUnaryInterceptor(new(sharedToken).intercept)}
	}
	if o.caFile != "" || o.certFile != "" {
		tls, err := transport.TLSInfo{TrustedCAFile: o.caFile, CertFile: o.certFile, KeyFile: o.keyFile}.ClientConfig()
		if err != nil {
			return config, fmt.Errorf("TLS for --etcd: %w", err)
		}
		config.TLS = tls
	}
	return config, nil
}

// connect makes a client of an etcd elsewhere. It does not wait for it.
func connect(o options, logger *zap.Logger) (origin, error) {
	config, err := clientConfig(o, logger)
	if err != nil {
		return origin{}, err
	}
	client, err := clientv3.New(config)
	if err != nil {
		return origin{}, fmt.Errorf("connect to %s: %w", strings.Join(o.endpoints, ", "), err)
	}
	return origin{
		client: client, name: "etcd at " + strings.Join(o.endpoints, ", "), close: client.Close,
		advice: "Start it, or see its log and the way to it; nothing here needs a restart.",
	}, nil
}

// lockPatience is how long another process may have the data.
const lockPatience = 2 * time.Second

// start runs an etcd of one member in this process, on sockets that its user alone can reach.
func start(folder string, logger *zap.Logger, quiet func()) (origin, error) {
	// etcd would wait for another process without an end.
	database := filepath.Join(folder, "member", "snap", "db")
	if _, err := os.Stat(database); err == nil {
		lock, err := bbolt.Open(database, 0o600, &bbolt.Options{Timeout: lockPatience})
		if err != nil {
			return origin{}, fmt.Errorf("open --data %s, which another process may be using: %w", folder, err)
		}
		if err := lock.Close(); err != nil {
			return origin{}, err
		}
	}
	config := embed.NewConfig()
	config.Dir = folder
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(logger)
	sockets, err := keepPrivate(config)
	if err != nil {
		return origin{}, fmt.Errorf("make a folder for the sockets of etcd: %w", err)
	}
	// As often as kube-apiserver compacts.
	config.AutoCompactionMode, config.AutoCompactionRetention = embed.CompactorModePeriodic, "5m"
	server, err := embed.StartEtcd(config)
	if err != nil {
		return origin{}, errors.Join(cannotStart(folder, err), os.RemoveAll(sockets))
	}
	stop := func() error {
		quiet()
		server.Close()
		return os.RemoveAll(sockets)
	}
	select {
	case <-server.Server.ReadyNotify():
	case err := <-server.Err():
		return origin{}, errors.Join(cannotStart(folder, err), stop())
	}
	address := "unix://" + server.Clients[0].Addr().String()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{address}, Logger: clientLogger(logger)})
	if err != nil {
		return origin{}, errors.Join(err, stop())
	}
	return origin{
		client: client, name: fmt.Sprintf("etcd at %s, with its data in %s", address, folder), failed: server.Err(),
		close:  func() error { return errors.Join(client.Close(), stop()) },
		advice: "It runs in this process: see its lines above, and whether the disk of --data " + folder + " is full or slow.",
	}, nil
}

func cannotStart(folder string, err error) error {
	if advice := spaceAdvice(folder, err); advice != "" {
		return errors.New(advice)
	}
	return fmt.Errorf("start an etcd on --data %s: %w", folder, err)
}

// clientLogger: a client warns of each attempt that fails, which the pulse tells once.
func clientLogger(logger *zap.Logger) *zap.Logger { return logger.Named("client") }
