// Command deliver is a worker, for test/lab/outcomes, which ends it at any moment: it reads its setup, prints "ready", reads
// deliveries as lines of JSON, charges at a provider, and prints outcomes.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/onceward/onceward/clients/go/onceward"
)

type setup struct {
	Address      string `json:"address"`
	APIKey       string `json:"apiKey"`
	LeaseMs      int    `json:"leaseMs"`
	Interruption string `json:"interruption"`
	TimeLimitMs  int    `json:"timeLimitMs"`
	MarksBegin   bool   `json:"marksBegin"`
}

type delivery struct {
	ID        int      `json:"id"`
	Namespace string   `json:"namespace"`
	Key       string   `json:"key"`
	Provider  provider `json:"provider"`
	DieAt     string   `json:"dieAt"`
}

type outcome struct {
	ID     int             `json:"id"`
	Looked bool            `json:"looked"`
	Value  int             `json:"value,omitempty"`
	Reason onceward.Reason `json:"reason,omitempty"`
}

func main() {
	if err := work(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func work() error {
	lines := json.NewDecoder(bufio.NewReader(os.Stdin))
	var set setup
	if err := lines.Decode(&set); err != nil {
		return err
	}
	client, err := onceward.New(set.Address, onceward.Options{APIKey: set.APIKey})
	if err != nil {
		return err
	}
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go interrupt(client, set.Interruption, signals, leave)
	fmt.Println("ready")
	var printing sync.Mutex
	for {
		var given delivery
		if err := lines.Decode(&given); err != nil {
			return err
		}
		go func() {
			line, _ := json.Marshal(deliver(ctx, client, set, given))
			printing.Lock()
			defer printing.Unlock()
			fmt.Println(string(line))
		}()
	}
}

// interrupt closes the client, or ends its callers' contexts, at SIGTERM.
func interrupt(client *onceward.Client, interruption string, signals <-chan os.Signal, leave func()) {
	<-signals
	if interruption == "cancel" {
		leave()
		return
	}
	closed, stop := context.WithCancel(context.Background())
	stop()
	_ = client.Close(closed)
}

func deliver(ctx context.Context, client *onceward.Client, set setup, given delivery) outcome {
	printed := outcome{ID: given.ID}
	operation := onceward.Operation{
		Namespace: given.Namespace, Key: given.Key, OnInProgress: onceward.FailInProgress,
		Lease: time.Duration(set.LeaseMs) * time.Millisecond, MarksBegin: set.MarksBegin,
	}
	if resolve := resolvers[given.Provider.Kind]; resolve != nil {
		operation.OnError = onceward.UnknownOnError
		operation.Resolve = func(ctx context.Context, claim *onceward.Claim) (onceward.Resolution, error) {
			printed.Looked = true
			given.reach("while it looks")
			return resolve(ctx, given.Provider, claim)
		}
	}
	given.reach("before the claim")
	value, err := onceward.Run(ctx, client, operation, func(ctx context.Context, claim *onceward.Claim) (int, error) {
		given.reach("before it begins")
		if err := claim.Begin(ctx); err != nil {
			return 0, err
		}
		given.reach("before the call")
		limited, stop := context.WithTimeout(ctx, time.Duration(set.TimeLimitMs)*time.Millisecond)
		defer stop()
		id, err := given.Provider.charge(limited, claim)
		if err == nil {
			given.reach("before the completion")
		}
		return id, err
	})
	var failed *onceward.Error
	switch {
	case err == nil:
		printed.Value = value
	case errors.As(err, &failed):
		printed.Reason = failed.Reason
	default:
		printed.Reason = "INTERRUPTED"
	}
	given.reach("after the completion")
	return printed
}

// reach ends this process if the delivery is to die here.
func (d delivery) reach(moment string) {
	if d.DieAt == moment {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}
