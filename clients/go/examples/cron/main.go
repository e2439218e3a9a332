// Command cron is a nightly job that the crontabs of three machines start at once, and that a person starts once more: it runs
// once, and continues after its last checkpoint when the first machine fails.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onceward/onceward/clients/go/onceward"
)

var (
	settled, reported atomic.Int32
	errDown           = errors.New("the ledger is down")
)

func closeDay(ctx context.Context, client *onceward.Client, day string) (string, error) {
	key, err := onceward.JoinKey("close", day)
	if err != nil {
		return "", err
	}
	operation := onceward.Operation{Namespace: "example-nightly", Key: key}
	return onceward.Run(ctx, client, operation, func(ctx context.Context, claim *onceward.Claim) (string, error) {
		if claim.Checkpoint == nil || claim.Checkpoint.Name != "settled" {
			settled.Add(1)
			if err := claim.SaveCheckpoint(ctx, "settled", nil); err != nil {
				return "", err
			}
		}
		if claim.Attempt == 1 {
			return "", errDown
		}
		return fmt.Sprintf("report %d", reported.Add(1)), nil
	})
}

func main() {
	client, err := onceward.New(os.Getenv("ONCEWARD_ADDRESS"), onceward.Options{APIKey: os.Getenv("ONCEWARD_API_KEY")})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	defer client.Close(ctx)

	// In your crontab: the day that the job is for, such as 2026-03-01. This example runs as often as you like.
	day := onceward.NewKey()
	var machines sync.WaitGroup
	var failures atomic.Int32
	for range 3 {
		machines.Go(func() {
			if _, err := closeDay(ctx, client, day); errors.Is(err, errDown) {
				failures.Add(1)
			} else if err != nil {
				log.Fatal(err)
			}
		})
	}
	machines.Wait()
	report, err := closeDay(ctx, client, day)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d machine failed; settled %d times, reported %d times: %s\n",
		failures.Load(), settled.Load(), reported.Load(), report)
}
