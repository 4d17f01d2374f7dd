package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// etcdLogger writes the log of etcd and its client: errors, with a verbosity of 1 warnings, with 2
// all levels but debug. Before etcd ends the process, it names the remedy. After quiet, which comes
// before an orderly end, it writes no more than that.
func etcdLogger(stderr io.Writer, verbosity int, folder string) (logger *zap.Logger, quiet func()) {
	level := zap.NewAtomicLevelAt(zapcore.ErrorLevel)
	switch {
	case verbosity >= 2:
		level.SetLevel(zapcore.InfoLevel)
	case verbosity == 1:
		level.SetLevel(zapcore.WarnLevel)
	}
	config := zap.NewProductionEncoderConfig()
	config.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05")
	config.CallerKey, config.StacktraceKey = zapcore.OmitKey, zapcore.OmitKey
	core := zapcore.NewCore(zapcore.NewConsoleEncoder(config), zapcore.AddSync(stderr), level)
	end := lastWords{stderr, folder}
	logger = zap.New(core, zap.WithFatalHook(end), zap.WithPanicHook(end)).Named("etcd")
	return logger, func() { level.SetLevel(zapcore.PanicLevel) }
}

// lastWords ends the process after a fault that etcd cannot live with.
type lastWords struct {
	stderr io.Writer
	folder string
}

// OnWrite implements zapcore.CheckWriteHook.
func (l lastWords) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	fmt.Fprintf(l.stderr, "tributary: etcd cannot go on: %s\n", adviceFor(l.folder, entry.Message, fields))
	os.Exit(exitFailed)
}

// adviceFor is the remedy for a fatal fault.
func adviceFor(folder, message string, fields []zapcore.Field) string {
	for _, f := range fields {
		err, ok := f.Interface.(error)
		if !ok {
			continue
		}
		if cause := spaceAdvice(folder, err); cause != "" {
			return cause
		}
		message += ": " + err.Error()
	}
	return message
}

// spaceAdvice is the remedy for a full disk; empty if an error has another cause.
func spaceAdvice(folder string, err error) string {
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) ||
		strings.Contains(err.Error(), syscall.ENOSPC.Error())
	if !full {
		return ""
	}
	return fmt.Sprintf("the disk of --data %s is full (%v): free some space there, then start again; "+
		"every write that was acknowledged is kept", folder, err)
}
