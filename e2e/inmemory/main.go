// Command inmemory serves the built-in kinds on a free port of this machine, and keeps their
// objects in memory. It prints its address, and ends when its standard input does.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
)

func main() {
	server, err := apiserver.NewServer()
	if err != nil {
		log.Fatal(err)
	}
	builtin.Serve(server)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("in memory on http://%s\n", listener.Addr())
	go func() { log.Fatal(http.Serve(listener, server)) }()
	_, _ = io.Copy(io.Discard, os.Stdin)
}
