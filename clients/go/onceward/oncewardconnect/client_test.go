package oncewardconnect_test

import (
	"context"
	"testing"

	"connectrpc.com/connect"

	"github.com/onceward/onceward/clients/go/onceward"
	"github.com/onceward/onceward/clients/go/onceward/internal/outgoing/outgoingtest"
	"github.com/onceward/onceward/clients/go/onceward/oncewardconnect"
	"github.com/onceward/onceward/clients/go/onceward/oncewardgrpc"
	"github.com/onceward/onceward/clients/go/onceward/oncewardtest"
)

func TestAfterACrashTheNextServiceGetsTheSameKeyAndHasOneEffect(t *testing.T) {
	forEachProtocol(t, charged, func(t *testing.T, bank *shop) {
		outgoingtest.CrashAndRepeat(t, func(ctx context.Context) (any, error) {
			_, err := bank.client.CallUnary(ctx, connect.NewRequest(&request{ResponseSize: 1}))
			return nil, err
		})
		if bank.calls.Load() != 1 {
			t.Errorf("%d calls", bank.calls.Load())
		}
	})
}

func TestACallHasTheKeyOfItsProcedureUnlessItHasOneOrNeedsNone(t *testing.T) {
	var sent string
	note := connect.UnaryInterceptorFunc(func(connect.UnaryFunc) connect.UnaryFunc {
		return func(_ context.Context, call connect.AnyRequest) (connect.AnyResponse, error) {
			sent = call.Header().Get("Idempotency-Key")
			return connect.NewResponse(&response{}), nil
		}
	})
	orders := oncewardtest.New(t, oncewardtest.Options{})
	order := onceward.Operation{Namespace: "orders", Key: "order-1"}
	_, err := onceward.Run(t.Context(), orders.Client, order, func(ctx context.Context, claim *onceward.Claim) (any, error) {
		for _, each := range []struct {
			level     connect.IdempotencyLevel
			own, want string
		}{
			{connect.IdempotencyUnknown, "", `"` + claim.DeriveKey(procedure) + `"`},
			{connect.IdempotencyUnknown, "own", "own"},
			{connect.IdempotencyNoSideEffects, "", ""},
		} {
			keys := oncewardconnect.ClientInterceptor(oncewardgrpc.ClientOptions{})
			client := connect.NewClient[request, response](
				nil, "http://bank"+procedure, connect.WithIdempotency(each.level), connect.WithInterceptors(keys, note))
			call := connect.NewRequest(&request{})
			if each.own != "" {
				call.Header().Set("Idempotency-Key", each.own)
			}
			if _, err := client.CallUnary(ctx, call); err != nil || sent != each.want {
				t.Errorf("%s was sent, not %s; %v", sent, each.want, err)
			}
		}
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
