package crd

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	documents "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const kind = "CustomResourceDefinition"

// Load reads the definitions in a file of YAML or JSON documents, or in all such files of a folder
// and of the folders in it, in the order of their names. Documents of other kinds are skipped.
//
// Definitions are checked as the API server checks them. Errors name the file and the document:
// an unreadable document, an invalid definition, and a path without a definition.
func Load(path string) (all []*apiextensionsv1.CustomResourceDefinition, err error) {
	files, err := filesOf(path)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		found, err := loadFile(file)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no %s of %s", path, kind, apiextensionsv1.SchemeGroupVersion)
	}
	return all, nil
}

// filesOf is the path itself, or the files in it if it is a folder.
func filesOf(path string) (files []string, err error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	err = filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(file)) {
			files = append(files, file)
		}
		return err
	})
	return files, err
}

func loadFile(path string) (all []*apiextensionsv1.CustomResourceDefinition, err error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	reader := documents.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for number := 1; ; number++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		var d *apiextensionsv1.CustomResourceDefinition
		if err == nil {
			d, err = read(document)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: document %d: %w", path, number, err)
		}
		if d != nil {
			all = append(all, d)
		}
	}
}

// read returns the definition in a document, or nil if that is of another kind.
func read(document []byte) (*apiextensionsv1.CustomResourceDefinition, error) {
	var is metav1.TypeMeta
	if err := yaml.Unmarshal(document, &is); err != nil {
		return nil, err
	}
	if is.Kind != kind || is.APIVersion != apiextensionsv1.SchemeGroupVersion.String() {
		return nil, nil
	}
	d := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(document, d); err != nil {
		return nil, err
	}
	if errs := validateDefinition(completed(d), nil); len(errs) > 0 {
		return nil, fmt.Errorf("%s: %w", d.Name, errs.ToAggregate())
	}
	return d, nil
}

// completed is a definition with its defaults.
func completed(d *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	d = d.DeepCopy()
	apiextensionsv1.SetDefaults_CustomResourceDefinition(d)
	return d
}
