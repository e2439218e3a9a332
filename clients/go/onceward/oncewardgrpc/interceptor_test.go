package oncewardgrpc_test

import (
	"context"
	"errors"
	"fmt"
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
	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
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
	options oncewardgrpc.Options,
) *shop {
	t.Helper()
	made := &shop{Service: oncewardtest.New(t, oncewardtest.Options{}), charge: charge}
	options.Namespace, options.Timeout = "charges", time.Millisecond
	options.Methods = []string{grpc_testing.TestService_UnaryCall_FullMethodName}
	options.Caller = func(context.Context, proto.Message) string { return "a" }
	options.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	guard, err := oncewardgrpc.UnaryServerInterceptor(made.Client, options)
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
	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(oncewardgrpc.UnaryClientInterceptor(oncewardgrpc.ClientOptions{})))
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
	shop := start(t, charged, oncewardgrpc.Options{})
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

func TestADuplicateOfAMessageOfWhichAMarkIsStoredGetsNone(t *testing.T) {
	shop := start(t, charged, oncewardgrpc.Options{StoresMark: true})
	if first, _, err := shop.call(t, "k-1", 1); err != nil || first == "" {
		t.Errorf("the first call got %q, %v", first, err)
	}
	_, _, err := shop.call(t, "k-1", 1)
	if status.Code(err) != codes.AlreadyExists || reasonOf(err) != "RESULT_LOST" || shop.calls.Load() != 1 {
		t.Errorf("a repeat got %v after %d calls", err, shop.calls.Load())
	}
}

func TestAFailureThatRefusesTheRequestIsStoredWithItsDetails(t *testing.T) {
	shop := start(t, func(context.Context, *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
		declined, err := status.New(codes.FailedPrecondition, "declined").WithDetails(&errdetails.ErrorInfo{Reason: "STOLEN_CARD"})
		return nil, errors.Join(err, declined.Err())
	}, oncewardgrpc.Options{})
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

func TestAnyOtherFailureReleasesTheClaimOrLeavesItToThePolicy(t *testing.T) {
	refused, err := status.New(codes.FailedPrecondition, "by the guard of the bank").WithDetails(
		&errdetails.ErrorInfo{Reason: "AMBIGUOUS", Domain: "onceward"})
	if err != nil {
		t.Fatal(err)
	}
	busy, err := status.New(codes.Unavailable, "busy").WithDetails(&errdetails.RetryInfo{})
	if err != nil {
		t.Fatal(err)
	}
	const released, unknown = oncewardv1.Record_STATE_RELEASED, oncewardv1.Record_STATE_IN_PROGRESS
	for name, each := range map[string]struct {
		onError onceward.OnError
		failure error
		want    oncewardv1.Record_State
	}{
		"a code":                    {0, status.Error(codes.Internal, "bank"), released},
		"a code, for money":         {onceward.UnknownOnError, status.Error(codes.Internal, "bank"), unknown},
		"a connection that broke":   {0, status.Error(codes.Unavailable, "bank"), unknown},
		"a bank that sheds load":    {0, busy.Err(), released},
		"an unknown error":          {0, fmt.Errorf("charge: %w", status.Error(codes.Unknown, "bank")), unknown},
		"an error without a code":   {0, errors.New("bank"), released},
		"no effect, for money":      {onceward.UnknownOnError, &onceward.NoEffectError{Cause: status.Error(codes.NotFound, "")}, released},
		"no effect":                 {0, &onceward.NoEffectError{Cause: status.Error(codes.NotFound, "")}, released},
		"a TerminalError":           {0, &onceward.TerminalError{Message: "of a nested run"}, released},
		"a refusal of the bank":     {0, refused.Err(), released},
		"a deadline":                {0, fmt.Errorf("charge: %w", context.DeadlineExceeded), unknown},
		"a deadline as a code":      {0, status.Error(codes.DeadlineExceeded, "bank"), unknown},
		"a stored code, unknown":    {0, &onceward.OutcomeUnknownError{Cause: status.Error(codes.FailedPrecondition, "bank")}, unknown},
		"an unknown effect of none": {0, errors.Join(&onceward.NoEffectError{}, &onceward.OutcomeUnknownError{}), unknown},
	} {
		shop := start(t, func(context.Context, *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
			return nil, each.failure
		}, oncewardgrpc.Options{OnError: each.onError})
		if _, _, err := shop.call(t, "k-1", 1); err == nil {
			t.Errorf("%s: no error", name)
		}
		if state := shop.state(); state != each.want {
			t.Errorf("%s: the record is %v", name, state)
		}
	}
}

func (s *shop) state() oncewardv1.Record_State {
	return s.Record("charges", grpc_testing.TestService_UnaryCall_FullMethodName+":a:k-1").GetState()
}

func TestAMethodHasTheDeadlineOfItsCaller(t *testing.T) {
	ended := make(chan error, 1)
	shop := start(t, func(ctx context.Context, _ *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}, oncewardgrpc.Options{})
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "idempotency-key", "k-1"), 100*time.Millisecond)
	defer cancel()
	_, err := shop.client.UnaryCall(ctx, &grpc_testing.SimpleRequest{})
	if status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("the caller got %v", err)
	}
	if cause := <-ended; cause != context.DeadlineExceeded {
		t.Errorf("the method's context ended with %v", cause)
	}
	if _, _, err := shop.call(t, "k-1", 0); status.Code(err) != codes.Aborted {
		t.Errorf("a repeat got %v", err)
	}
}

func TestANestedRunThatGetsNoAnswerReleasesTheClaim(t *testing.T) {
	unreachable, err := onceward.New("http://127.0.0.1:1", onceward.Options{APIKey: "key", Timeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unreachable.Close(t.Context()) }()
	shop := start(t, func(ctx context.Context, _ *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
		_, err := onceward.Run(ctx, unreachable, onceward.Operation{Namespace: "mails", Key: "m-1"},
			func(context.Context, *onceward.Claim) (string, error) { return "", nil })
		return nil, err
	}, oncewardgrpc.Options{})
	if _, _, err := shop.call(t, "k-1", 1); err == nil {
		t.Error("no error")
	}
	if state := shop.state(); state != oncewardv1.Record_STATE_RELEASED {
		t.Errorf("the record is %v", state)
	}
}

func TestARefusalOfANestedRunIsNotTheAnswerToTheCall(t *testing.T) {
	var shop *shop
	shop = start(t, func(ctx context.Context, _ *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
		shop.FailNext(oncewardtest.Claim, onceward.ErrFingerprintMismatch)
		_, err := onceward.Run(ctx, shop.Client, onceward.Operation{Namespace: "mails", Key: "m-1"},
			func(context.Context, *onceward.Claim) (string, error) { return "", nil })
		return nil, err
	}, oncewardgrpc.Options{})
	if _, _, err := shop.call(t, "k-1", 1); status.Code(err) != codes.Unknown || reasonOf(err) != "" {
		t.Errorf("the caller got %v", err)
	}
}

func TestAMethodThatMarksItsClaimIsAmbiguous(t *testing.T) {
	shop := start(t, func(ctx context.Context, _ *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
		claim, _ := onceward.ClaimFromContext(ctx)
		_ = claim.OutcomeUnknown(errors.New("the bank timed out"))
		return &grpc_testing.SimpleResponse{}, nil
	}, oncewardgrpc.Options{})
	if _, _, err := shop.call(t, "k-1", 1); reasonOf(err) != "AMBIGUOUS" {
		t.Errorf("the caller got %v", err)
	}
	if state := shop.state(); state != oncewardv1.Record_STATE_IN_PROGRESS {
		t.Errorf("the record is %v", state)
	}
}

func TestWhatResolveFoundIsTheAnswerOfALaterCall(t *testing.T) {
	shop := start(t, func(context.Context, *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
		return nil, &onceward.OutcomeUnknownError{Message: "the bank timed out"}
	}, oncewardgrpc.Options{Resolve: func(_ context.Context, claim *onceward.Claim, request proto.Message) (onceward.Resolution, error) {
		size := request.(*grpc_testing.SimpleRequest).GetResponseSize()
		return onceward.Happened(&grpc_testing.SimpleResponse{Username: fmt.Sprint(size, claim.Attempt)}), nil
	}})
	if _, _, err := shop.call(t, "k-1", 7); err == nil {
		t.Error("the first call succeeded")
	}
	shop.Advance(30 * time.Second)
	for range 2 {
		if got, _, err := shop.call(t, "k-1", 7); got != "7 2" || err != nil || shop.calls.Load() != 1 {
			t.Errorf("a call got %q, %v after %d calls", got, err, shop.calls.Load())
		}
	}
}

func TestWithoutTheServiceNothingRuns(t *testing.T) {
	shop := start(t, charged, oncewardgrpc.Options{})
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
