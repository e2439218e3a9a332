// Command deliver makes one delivery of an operation, for test/tools/client-crashes, which ends it at any moment: it prints
// "ready", reads what to deliver as a line of JSON, has an effect by HTTP, and prints the outcome.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/onceward/onceward/clients/go/onceward"
)

type delivery struct {
	Address         string `json:"address"`
	APIKey          string `json:"apiKey"`
	Namespace       string `json:"namespace"`
	Key             string `json:"key"`
	EffectURL       string `json:"effectUrl"`
	LeaseMs         int    `json:"leaseMs"`
	AcceptAmbiguous bool   `json:"acceptAmbiguous"`
	Interruption    string `json:"interruption"`
	TimeLimitMs     int    `json:"timeLimitMs"`
}

type effect struct {
	Key          string `json:"key"`
	DerivedKey   string `json:"derivedKey"`
	Attempt      int    `json:"attempt"`
	FencingToken int64  `json:"fencingToken"`
}

type outcome struct {
	Value    int             `json:"value"`
	Replayed bool            `json:"replayed"`
	Reason   onceward.Reason `json:"reason,omitempty"`
}

func main() {
	if err := deliver(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func deliver() error {
	fmt.Println("ready")
	line, err := bufio.NewReader(os.Stdin).ReadBytes('\n')
	if err != nil {
		return err
	}
	var given delivery
	if err := json.Unmarshal(line, &given); err != nil {
		return err
	}
	client, err := onceward.New(given.Address, onceward.Options{APIKey: given.APIKey})
	if err != nil {
		return err
	}
	operation := onceward.Operation{
		Namespace: given.Namespace, Key: given.Key, Lease: time.Duration(given.LeaseMs) * time.Millisecond,
		AcceptAmbiguous: given.AcceptAmbiguous,
	}
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		<-signals
		if given.Interruption == "cancel" {
			leave()
			return
		}
		closed, stop := context.WithCancel(context.Background())
		stop()
		_ = client.Close(closed)
	}()
	calls := &http.Client{Timeout: time.Duration(given.TimeLimitMs) * time.Millisecond}
	result, err := onceward.RunDetailed(ctx, client, operation,
		func(ctx context.Context, claim *onceward.Claim) (int, error) {
			return haveEffect(ctx, calls, given.EffectURL, effect{claim.Key, claim.DeriveKey("bank"), claim.Attempt, claim.FencingToken})
		})
	printed := outcome{Value: result.Value, Replayed: result.Replayed}
	var failed *onceward.Error
	switch {
	case errors.As(err, &failed):
		printed.Reason = failed.Reason
	case err != nil:
		printed.Reason = "INTERRUPTED"
	}
	return json.NewEncoder(os.Stdout).Encode(printed)
}

// haveEffect has the effect. Returns its number.
func haveEffect(ctx context.Context, calls *http.Client, url string, made effect) (int, error) {
	body, err := json.Marshal(made)
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	response, err := calls.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	var number int
	return number, json.NewDecoder(response.Body).Decode(&number)
}
