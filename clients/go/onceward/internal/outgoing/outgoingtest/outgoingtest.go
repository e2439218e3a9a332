// Package outgoingtest has what tests of calls to other services share.
package outgoingtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/onceward/onceward/clients/go/onceward"
	"github.com/onceward/onceward/clients/go/onceward/oncewardtest"
)

// CrashAndRepeat calls another service under a claim, as if the process died after the effect of the call, and again after the end of
// the lease. It returns what the second call returned.
func CrashAndRepeat[T any](t *testing.T, call func(context.Context) (T, error)) T {
	t.Helper()
	orders := oncewardtest.New(t, oncewardtest.Options{})
	order := onceward.Operation{Namespace: "orders", Key: "order-1"}
	place := func(ctx context.Context, _ *onceward.Claim) (T, error) { return call(ctx) }
	orders.FailNext(oncewardtest.Complete, onceward.ErrInternal)
	var lost *onceward.CompletionError
	if _, err := onceward.Run(t.Context(), orders.Client, order, place); !errors.As(err, &lost) {
		t.Fatal(err)
	}
	orders.Advance(30 * time.Second)
	answer, err := onceward.Run(t.Context(), orders.Client, order, place)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}
