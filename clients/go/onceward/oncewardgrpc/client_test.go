package oncewardgrpc_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	"github.com/onceward/onceward/clients/go/onceward"
	"github.com/onceward/onceward/clients/go/onceward/internal/outgoing/outgoingtest"
	"github.com/onceward/onceward/clients/go/onceward/oncewardgrpc"
	"github.com/onceward/onceward/clients/go/onceward/oncewardtest"
	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

func TestAfterACrashTheNextServiceGetsTheSameKeyAndHasOneEffect(t *testing.T) {
	bank := start(t, charged, oncewardgrpc.Options{})
	answer := outgoingtest.CrashAndRepeat(t, func(ctx context.Context) (string, error) {
		response, err := bank.client.UnaryCall(ctx, &grpc_testing.SimpleRequest{ResponseSize: 1})
		return response.GetUsername(), err
	})
	if answer == "" || bank.calls.Load() != 1 {
		t.Errorf("%q after %d calls", answer, bank.calls.Load())
	}
}

func TestACallHasTheKeyOfItsClaimAndMethodIfItNeedsOne(t *testing.T) {
	const create = "/shop.v1.Charges/CreateCharge"
	var sent string
	note := func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
		headers, _ := metadata.FromOutgoingContext(ctx)
		sent = strings.Join(headers.Get("idempotency-key"), ",")
		return nil
	}
	orders := oncewardtest.New(t, oncewardtest.Options{})
	order := onceward.Operation{Namespace: "orders", Key: "order-1"}
	_, err := onceward.Run(t.Context(), orders.Client, order, func(ctx context.Context, claim *onceward.Claim) (any, error) {
		own := metadata.AppendToOutgoingContext(ctx, "idempotency-key", "own")
		second := func(context.Context, string, any) string { return "second" }
		for _, each := range []struct {
			ctx    context.Context
			method string
			name   func(context.Context, string, any) string
			want   string
		}{
			{ctx, create, nil, `"` + claim.DeriveKey(create) + `"`},
			{ctx, create, second, `"` + claim.DeriveKey("second") + `"`},
			{own, create, nil, "own"},
			{ctx, oncewardv1.IdempotencyService_Lookup_FullMethodName, nil, ""},
			{t.Context(), create, nil, ""},
		} {
			intercept := oncewardgrpc.UnaryClientInterceptor(oncewardgrpc.ClientOptions{Name: each.name})
			if err := intercept(each.ctx, each.method, nil, nil, nil, note); err != nil || sent != each.want {
				t.Errorf("%s was sent, not %s; %v", sent, each.want, err)
			}
		}
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
