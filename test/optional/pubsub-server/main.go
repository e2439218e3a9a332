// Runs the Pub/Sub server of Google's own tests on a loopback port, prints its address, and ends with standard input.
package main

import (
	"fmt"
	"io"
	"os"

	"cloud.google.com/go/pubsub/pstest"
)

func main() {
	server := pstest.NewServer()
	defer server.Close()
	fmt.Println(server.Addr)
	io.Copy(io.Discard, os.Stdin)
}
