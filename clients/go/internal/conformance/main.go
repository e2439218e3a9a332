// Command conformance is the adapter of the Go client for clients/conformance: a case in on each line of standard input, its
// outcome out on each line of standard output.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// Longer than any case.
const maxLineBytes = 16 << 20

func main() {
	if err := perform(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func perform() error {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, maxLineBytes)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		outcome, err := outcomeOf(lines.Bytes())
		if err != nil {
			return err
		}
		if err := out.Encode(outcome); err != nil {
			return err
		}
	}
	return lines.Err()
}

func outcomeOf(line []byte) (any, error) {
	line = markLoneSurrogates(line)
	var action struct {
		Do string `json:"do"`
	}
	if err := json.Unmarshal(line, &action); err != nil {
		return nil, err
	}
	switch action.Do {
	case "service":
		return performService(line)
	case "run":
		return performRuns(line)
	case "message":
		return performMessages(line)
	case "httpOperation":
		return performHTTP(line)
	default:
		return performAction(action.Do, line)
	}
}
