package oncewardgrpc_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/onceward/onceward/clients/go/onceward"
	"github.com/onceward/onceward/clients/go/onceward/oncewardgrpc"
	"github.com/onceward/onceward/clients/go/onceward/oncewardtest"
)

type shop struct {
	grpc_testing.UnimplementedTestServiceServer
	*oncewardtest.Service
	client grpc_testing.TestServiceClient
	calls  atomic.Int32
	charge func(context.Context, *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error)
}

func (s *shop) UnaryCall(ctx context.Context, request *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
	s.calls.Add(1)
	return s.charge(ctx, request)
}

func start(
	t *testing.T, charge func(context.Context, *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error),
) *shop {
	t.Helper()
	made := &shop{Service: oncewardtest.New(t, oncewardtest.Options{}), charge: charge}
	guard, err := oncewardgrpc.UnaryServerInterceptor(made.Client, oncewardgrpc.Options{
		Namespace: "charges",
		Methods:   []string{grpc_testing.TestService_UnaryCall_FullMethodName},
		Caller:    func(context.Context, proto.Message) string { return "a" },
		Timeout:   time.Millisecond,
		Logger:    slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(guard))
	grpc_testing.RegisterTestServiceServer(server, made)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }() // Ends when the test stops the server.
	t.Cleanup(server.Stop)
	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	made.client = grpc_testing.NewTestServiceClient(connection)
	return made
}

// call calls with a key. Returns the response's user name, and whether it is a replay.
func (s *shop) call(t *testing.T, key string, size int32) (string, bool, error) {
	t.Helper()
	ctx := t.Context()
	if key != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "idempotency-key", key)
	}
	var header metadata.MD
	response, err := s.client.UnaryCall(ctx, &grpc_testing.SimpleRequest{ResponseSize: size}, grpc.Header(&header))
	return response.GetUsername(), len(header.Get("idempotency-replayed")) > 0, err
}

func charged(ctx context.Context, _ *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
	claim, _ := onceward.ClaimFromContext(ctx)
	return &grpc_testing.SimpleResponse{Username: claim.DeriveKey("bank")}, nil
}

func TestARepeatGetsTheFirstMessage(t *testing.T) {
	shop := start(t, charged)
	first, replayedFirst, err := shop.call(t, `"k-1"`, 1)
	if err != nil {
		t.Fatal(err)
	}
	second, replayedSecond, err := shop.call(t, "k-1", 1)
	if err != nil || first != second || first == "" || replayedFirst || !replayedSecond || shop.calls.Load() != 1 {
		t.Errorf("%q, %q, %v, %v, %v after %d calls", first, second, replayedFirst, replayedSecond, err, shop.calls.Load())
	}
	if _, _, err := shop.call(t, "k-1", 2); reasonOf(err) != "FINGERPRINT_MISMATCH" {
		t.Errorf("another request got %v", err)
	}
	for _, key := range []string{"", "a,b"} {
		if _, _, err := shop.call(t, key, 1); status.Code(err) != codes.InvalidArgument {
			t.Errorf("the key %q got %v", key, err)
		}
	}
}

func TestAFailureThatRefusesTheRequestIsStoredWithItsDetails(t *testing.T) {
	shop := start(t, func(context.Context, *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
		declined, err := status.New(codes.FailedPrecondition, "declined").WithDetails(&errdetails.ErrorInfo{Reason: "STOLEN_CARD"})
		return nil, errors.Join(err, declined.Err())
	})
	for _, replayed := range []bool{false, true} {
		_, isReplay, err := shop.call(t, "k-1", 1)
		if status.Code(err) != codes.FailedPrecondition || reasonOf(err) != "STOLEN_CARD" || isReplay != replayed {
			t.Errorf("a call got %v, %v", err, isReplay)
		}
	}
	if shop.calls.Load() != 1 {
		t.Errorf("%d calls", shop.calls.Load())
	}
}

func TestAnyOtherFailureReleasesTheClaim(t *testing.T) {
	refused, err := status.New(codes.FailedPrecondition, "by the guard of the bank").WithDetails(
		&errdetails.ErrorInfo{Reason: "AMBIGUOUS", Domain: "onceward"})
	if err != nil {
		t.Fatal(err)
	}
	for _, failure := range []error{
		status.Error(codes.Unavailable, "bank"), &onceward.TerminalError{Message: "of a nested run"}, refused.Err(),
	} {
		shop := start(t, func(context.Context, *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
			return nil, failure
		})
		for range 2 {
			if _, _, err := shop.call(t, "k-1", 1); err == nil {
				t.Error("no error")
			}
		}
		if shop.calls.Load() != 2 {
			t.Errorf("%d calls after %v", shop.calls.Load(), failure)
		}
	}
}

func TestAMethodThatCannotKnowItsOutcomeLeavesItsClaimToThePolicy(t *testing.T) {
	shop := start(t, func(context.Context, *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
		// A code that Stores accepts, of the bank.
		return nil, &onceward.OutcomeUnknownError{Cause: status.Error(codes.FailedPrecondition, "the bank timed out")}
	})
	if _, _, err := shop.call(t, "k-1", 1); status.Code(err) != codes.FailedPrecondition || reasonOf(err) != "" {
		t.Errorf("the caller got %v", err)
	}
	if _, _, err := shop.call(t, "k-1", 1); status.Code(err) != codes.Aborted || shop.calls.Load() != 1 {
		t.Errorf("a call within the lease got %v after %d calls", err, shop.calls.Load())
	}
	shop.Advance(30 * time.Second)
	if _, _, err := shop.call(t, "k-1", 1); err == nil || shop.calls.Load() != 2 {
		t.Errorf("a call after the lease got %v after %d calls", err, shop.calls.Load())
	}
}

func TestWithoutTheServiceNothingRuns(t *testing.T) {
	shop := start(t, charged)
	for reason, code := range map[onceward.Reason]codes.Code{
		onceward.ErrDatabaseUnavailable: codes.Unavailable, onceward.ErrCredentialInvalid: codes.Internal,
	} {
		shop.FailNext(oncewardtest.Claim, reason)
		if _, _, err := shop.call(t, string("k-"+reason), 1); status.Code(err) != code {
			t.Errorf("%s got %v", reason, err)
		}
	}
	if shop.calls.Load() != 0 {
		t.Errorf("%d calls", shop.calls.Load())
	}
}

func TestMethodsThatAreNotThereAreRefused(t *testing.T) {
	caller := func(context.Context, proto.Message) string { return "a" }
	for _, method := range []string{"/grpc.testing.TestService/Unary", "/grpc.testing.TestService/FullDuplexCall", ""} {
		options := oncewardgrpc.Options{Caller: caller, Methods: []string{method}}
		if _, err := oncewardgrpc.UnaryServerInterceptor(nil, options); !errors.Is(err, onceward.ErrInvalidRequest) {
			t.Errorf("%q got %v", method, err)
		}
	}
}

func reasonOf(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, isInfo := detail.(*errdetails.ErrorInfo); isInfo {
			return info.GetReason()
		}
	}
	return ""
}
