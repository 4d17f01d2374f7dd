package sources

import (
	"cmp"
	"context"
	"errors"
	"io/fs"

	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/sources/internal/access"
	"github.com/tributary-go/tributary/sources/internal/limit"
	"github.com/tributary-go/tributary/sources/manifest"
)

// classOverdue is a required source that has not been read within its deadline.
const classOverdue = "overdue"

// classOf is the class of a problem, for the label of metrics.
func classOf(problem error) string {
	return cmp.Or(access.ClassOf(problem), string(classOfError(problem)))
}

// classOfError is the class of a problem that its maker has not marked.
func classOfError(problem error) reflector.Class {
	switch {
	case errors.As(problem, new(*manifest.Error)):
		return reflector.Undecodable
	case errors.Is(problem, fs.ErrNotExist):
		return reflector.NotFound
	case errors.Is(problem, fs.ErrPermission):
		return reflector.Forbidden
	case errors.Is(problem, limit.ErrTooLarge):
		return reflector.Refused
	case errors.Is(problem, context.DeadlineExceeded):
		return reflector.Silent
	}
	return reflector.Classify(problem)
}
