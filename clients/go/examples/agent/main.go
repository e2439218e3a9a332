// Command agent is an agent whose process dies after a refund, before its framework stored the tool's answer. The process is
// started again and resumes its run; the model's step is repeated, and the bank's ledger has one refund.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/onceward/onceward/clients/go/onceward"
)

// toolCall is a call of a tool in one step of a run. The model's own id of the call is not part of it: a repeated step has another.
type toolCall struct {
	runID     string
	step      int
	tool      string
	arguments any
}

// callTool runs a tool once for each call, however often the run is resumed. Returns what the model reads.
func callTool(
	ctx context.Context, client *onceward.Client, call toolCall, tool func(ctx context.Context, claim *onceward.Claim) (string, error),
) (string, error) {
	key, err := onceward.JoinKey(call.runID, call.step, call.tool)
	if err != nil {
		return "", err
	}
	operation := onceward.Operation{Namespace: "example-agent-tools", Key: key, Fingerprint: call.arguments}
	return onceward.Run(ctx, client, operation, tool)
}

type refund struct {
	Order string `json:"order"`
	Cents int    `json:"cents"`
}

// runAgent is one start of the agent's process. The first one dies after its first step.
func runAgent(runID, ledger, start string) error {
	client, err := onceward.New(os.Getenv("ONCEWARD_ADDRESS"), onceward.Options{APIKey: os.Getenv("ONCEWARD_API_KEY")})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	defer client.Close(ctx)

	asked := refund{"7", 4200} // By the model, in its first step.
	answer, err := callTool(ctx, client, toolCall{runID, 1, "refund", asked},
		func(_ context.Context, claim *onceward.Claim) (string, error) {
			file, err := os.OpenFile(ledger, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return "", err
			}
			defer file.Close()
			_, err = fmt.Fprintf(file, "%s %d %s\n", asked.Order, asked.Cents, claim.DeriveKey("bank"))
			return "refunded order " + asked.Order, err
		})
	if err != nil {
		return err
	}
	if start == "1" {
		os.Exit(1)
	}
	fmt.Println("the model reads:", answer)
	return nil
}

func startTwice() error {
	folder, err := os.MkdirTemp("", "agent-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	program, err := os.Executable()
	if err != nil {
		return err
	}
	runID, ledger, died := onceward.NewKey(), filepath.Join(folder, "ledger"), 0
	for _, start := range []string{"1", "2"} {
		process := exec.Command(program, runID, ledger, start)
		process.Stdout, process.Stderr = os.Stdout, os.Stderr
		if process.Run() != nil {
			died++
		}
	}
	refunds, err := os.ReadFile(ledger)
	if err != nil {
		return err
	}
	fmt.Printf("2 starts of the process, of which %d died; %d refund\n", died, strings.Count(string(refunds), "\n"))
	return nil
}

func main() {
	run := startTwice
	if len(os.Args) > 1 {
		run = func() error { return runAgent(os.Args[1], os.Args[2], os.Args[3]) }
	}
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
