package static_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/sources/manifest"
	"github.com/tributary-go/tributary/sources/static"
)

// Config maps from a folder: what is there at the start, and an edit.
func Example() {
	folder, err := os.MkdirTemp("", "configs-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	write := func(level string) {
		text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: log}\ndata: {level: " + level + "}\n"
		if err := os.WriteFile(filepath.Join(folder, "log.yaml"), []byte(text), 0o600); err != nil {
			panic(err)
		}
	}
	write("info")

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	configs := static.File(folder, manifest.Objects[corev1.ConfigMap](corev1.SchemeGroupVersion.WithKind("ConfigMap")))
	last := ""
	err = configs.Run(ctx, func(now static.State[*corev1.ConfigMap]) {
		config, ok := now.Objects.Get("log")
		if !ok || config.Data["level"] == last {
			return
		}
		last = config.Data["level"]
		fmt.Println("level is", last)
		if last == "debug" {
			cancel()
		}
		write("debug")
	})
	fmt.Println(err, configs.Report().Problems)
	// Output:
	// level is info
	// level is debug
	// <nil> []
}
