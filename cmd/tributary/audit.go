package main

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"sync"

	"gopkg.in/natefinch/lumberjack.v2"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/server/relay"
)

// auditing are the flags of the audit log. Their names are kube-apiserver's.
type auditing struct {
	path    string // empty: off
	megas   int
	backups int
}

func (a *auditing) register(flags *flag.FlagSet) {
	flags.StringVar(&a.path, "audit-log-path", "", "`file` that gets a line of JSON for each read that a cache answers (default: none)")
	flags.IntVar(&a.megas, "audit-log-maxsize", 100, "`megabytes` of the file before it is rotated")
	flags.IntVar(&a.backups, "audit-log-maxbackup", 10, "`number` of rotated files that are kept")
}

func (a auditing) check() error {
	if a.megas < 1 || a.backups < 1 {
		return errors.New("--audit-log-maxsize and --audit-log-maxbackup are at least 1")
	}
	return nil
}

// open is the log, whose files are the owner's alone.
func (a auditing) open(log klog.Logger) *auditLog {
	return &auditLog{out: &lumberjack.Logger{Filename: a.path, MaxSize: a.megas, MaxBackups: a.backups}, log: log}
}

// auditLog writes a line for each read.
type auditLog struct {
	log klog.Logger

	mu      sync.Mutex // guards the next fields
	out     io.WriteCloser
	failing bool
}

func (l *auditLog) write(read relay.Read) {
	line, err := json.Marshal(read)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		_, err = l.out.Write(append(line, '\n'))
	}
	if err != nil && !l.failing {
		l.log.Error(err, "The audit log cannot be written: reads go on without it")
	}
	l.failing = err != nil
}

func (l *auditLog) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Close()
}
