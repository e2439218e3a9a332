package oncewardconnect_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/protobuf/proto"

	"github.com/onceward/onceward/clients/go/onceward"
	"github.com/onceward/onceward/clients/go/onceward/oncewardconnect"
	"github.com/onceward/onceward/clients/go/onceward/oncewardgrpc"
	"github.com/onceward/onceward/clients/go/onceward/oncewardtest"
)

type (
	request  = grpc_testing.SimpleRequest
	response = grpc_testing.SimpleResponse
	charge   = func(context.Context, *connect.Request[request]) (*connect.Response[response], error)
)

const procedure = grpc_testing.TestService_UnaryCall_FullMethodName

type shop struct {
	*oncewardtest.Service
	client *connect.Client[request, response]
	calls  atomic.Int32
}

// protocols are the options of a client for each protocol of Connect.
var protocols = map[string][]connect.ClientOption{
	"connect":           nil,
	"connect with JSON": {connect.WithProtoJSON()},
	"gRPC":              {connect.WithGRPC()},
	"gRPC-Web":          {connect.WithGRPCWeb()},
}

func forEachProtocol(t *testing.T, charge charge, test func(t *testing.T, shop *shop)) {
	for name, options := range protocols {
		t.Run(name, func(t *testing.T) { test(t, start(t, charge, options)) })
	}
}

func start(t *testing.T, charge charge, protocol []connect.ClientOption) *shop {
	t.Helper()
	made := &shop{Service: oncewardtest.New(t, oncewardtest.Options{})}
	guard, err := oncewardconnect.Interceptor(made.Client, oncewardgrpc.Options{
		Namespace: "charges",
		Methods:   []string{procedure},
		Caller:    func(context.Context, proto.Message) string { return "a" },
		Timeout:   time.Millisecond,
		Resolve: func(context.Context, *onceward.Claim, proto.Message) (onceward.Resolution, error) {
			return onceward.Happened(&response{Username: "found"}), nil
		},
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	counted := func(ctx context.Context, request *connect.Request[request]) (*connect.Response[response], error) {
		made.calls.Add(1)
		return charge(ctx, request)
	}
	mux := http.NewServeMux()
	mux.Handle(procedure, connect.NewUnaryHandler(procedure, counted, connect.WithInterceptors(guard)))
	server := httptest.NewUnstartedServer(mux)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	// The guard works for a client that has it, too.
	sends := oncewardconnect.ClientInterceptor(oncewardgrpc.ClientOptions{})
	protocol = append([]connect.ClientOption{connect.WithInterceptors(guard, sends)}, protocol...)
	made.client = connect.NewClient[request, response](server.Client(), server.URL+procedure, protocol...)
	return made
}

// call calls with a key. Returns the response's user name, and whether it is marked as a replay.
func (s *shop) call(t *testing.T, key string, size int32) (string, bool, error) {
	t.Helper()
	sent := connect.NewRequest(&request{ResponseSize: size})
	if key != "" {
		sent.Header().Set("Idempotency-Key", key)
	}
	answer, err := s.client.CallUnary(t.Context(), sent)
	if err == nil {
		return answer.Msg.GetUsername(), answer.Header().Get("Idempotency-Replayed") == "true", nil
	}
	var failed *connect.Error
	return "", errors.As(err, &failed) && failed.Meta().Get("Idempotency-Replayed") == "true", err
}

func charged(ctx context.Context, _ *connect.Request[request]) (*connect.Response[response], error) {
	claim, _ := onceward.ClaimFromContext(ctx)
	answer := connect.NewResponse(&response{Username: claim.DeriveKey("bank")})
	answer.Header().Set("Charged", "true")
	return answer, nil
}

func TestARepeatGetsTheFirstMessage(t *testing.T) {
	forEachProtocol(t, charged, func(t *testing.T, shop *shop) {
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
			if _, _, err := shop.call(t, key, 1); connect.CodeOf(err) != connect.CodeInvalidArgument {
				t.Errorf("the key %q got %v", key, err)
			}
		}
	})
}

func TestTheFirstResponseHasTheMethodsHeaders(t *testing.T) {
	shop := start(t, charged, nil)
	sent := connect.NewRequest(&request{})
	sent.Header().Set("Idempotency-Key", "k-1")
	answer, err := shop.client.CallUnary(t.Context(), sent)
	if err != nil || answer.Header().Get("Charged") != "true" {
		t.Errorf("%v, %v", answer, err)
	}
}

func TestAFailureThatRefusesTheRequestIsStoredWithItsDetails(t *testing.T) {
	forEachProtocol(t, func(context.Context, *connect.Request[request]) (*connect.Response[response], error) {
		declined := connect.NewError(connect.CodeFailedPrecondition, errors.New("declined"))
		detail, err := connect.NewErrorDetail(&errdetails.ErrorInfo{Reason: "STOLEN_CARD"})
		declined.AddDetail(detail)
		return nil, errors.Join(err, declined)
	}, func(t *testing.T, shop *shop) {
		for _, replayed := range []bool{false, true} {
			_, isReplay, err := shop.call(t, "k-1", 1)
			isStored := connect.CodeOf(err) == connect.CodeFailedPrecondition && reasonOf(err) == "STOLEN_CARD"
			if !isStored || isReplay != replayed {
				t.Errorf("a call got %v, %v", err, isReplay)
			}
		}
		if shop.calls.Load() != 1 {
			t.Errorf("%d calls", shop.calls.Load())
		}
	})
}

func TestAnyOtherFailureReleasesTheClaim(t *testing.T) {
	for _, failure := range []error{
		connect.NewError(connect.CodeInternal, errors.New("bank")), &onceward.TerminalError{Message: "of a nested run"},
	} {
		shop := start(t, func(context.Context, *connect.Request[request]) (*connect.Response[response], error) {
			return nil, failure
		}, nil)
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
	// A code that Stores accepts, around the error.
	unknown := connect.NewError(connect.CodeFailedPrecondition, &onceward.OutcomeUnknownError{Message: "the bank timed out"})
	shop := start(t, func(context.Context, *connect.Request[request]) (*connect.Response[response], error) {
		return nil, unknown
	}, nil)
	if _, _, err := shop.call(t, "k-1", 1); connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Errorf("the caller got %v", err)
	}
	if _, _, err := shop.call(t, "k-1", 1); connect.CodeOf(err) != connect.CodeAborted || shop.calls.Load() != 1 {
		t.Errorf("a call within the lease got %v after %d calls", err, shop.calls.Load())
	}
	shop.Advance(30 * time.Second)
	for range 2 {
		if found, _, err := shop.call(t, "k-1", 1); found != "found" || err != nil || shop.calls.Load() != 1 {
			t.Errorf("a call after the lease got %q, %v after %d calls", found, err, shop.calls.Load())
		}
	}
}

func TestACallThatWasCutLeavesItsClaimToThePolicy(t *testing.T) {
	for _, code := range []connect.Code{connect.CodeUnavailable, connect.CodeUnknown, connect.CodeCanceled} {
		shop := start(t, func(context.Context, *connect.Request[request]) (*connect.Response[response], error) {
			return nil, connect.NewError(code, errors.New("bank"))
		}, nil)
		for _, want := range []connect.Code{code, connect.CodeAborted} {
			if _, _, err := shop.call(t, "k-1", 1); connect.CodeOf(err) != want {
				t.Errorf("after %v, a call got %v, not %v", code, err, want)
			}
		}
	}
}

func TestAnInterruptedMethodLeavesItsClaimToThePolicy(t *testing.T) {
	forEachProtocol(t, func(ctx context.Context, _ *connect.Request[request]) (*connect.Response[response], error) {
		deadline, _ := ctx.Deadline()
		if left := time.Until(deadline); left > time.Minute {
			return nil, fmt.Errorf("the method has %s", left)
		}
		return nil, connect.NewError(connect.CodeInternal, fmt.Errorf("charge: %w", context.DeadlineExceeded))
	}, func(t *testing.T, shop *shop) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, want := range []connect.Code{connect.CodeInternal, connect.CodeAborted} {
			sent := connect.NewRequest(&request{})
			sent.Header().Set("Idempotency-Key", "k-1")
			if _, err := shop.client.CallUnary(ctx, sent); connect.CodeOf(err) != want {
				t.Errorf("a call got %v, not %v", err, want)
			}
		}
	})
}

func TestAMethodThatCertainlyHadNoEffectReleasesItsClaim(t *testing.T) {
	refused := connect.NewError(connect.CodeNotFound, &onceward.NoEffectError{Message: "the bank is closed"})
	shop := start(t, func(context.Context, *connect.Request[request]) (*connect.Response[response], error) {
		return nil, refused
	}, nil)
	for range 2 {
		if _, _, err := shop.call(t, "k-1", 1); connect.CodeOf(err) != connect.CodeNotFound {
			t.Errorf("the caller got %v", err)
		}
	}
	if shop.calls.Load() != 2 {
		t.Errorf("%d calls", shop.calls.Load())
	}
}

func TestWithoutTheServiceNothingRuns(t *testing.T) {
	shop := start(t, charged, nil)
	for reason, code := range map[onceward.Reason]connect.Code{
		onceward.ErrDatabaseUnavailable: connect.CodeUnavailable, onceward.ErrCredentialInvalid: connect.CodeInternal,
	} {
		shop.FailNext(oncewardtest.Claim, reason)
		if _, _, err := shop.call(t, string("k-"+reason), 1); connect.CodeOf(err) != code {
			t.Errorf("%s got %v", reason, err)
		}
	}
	if shop.calls.Load() != 0 {
		t.Errorf("%d calls", shop.calls.Load())
	}
}

func TestAResponseThatIsNotStoredIsSent(t *testing.T) {
	shop := start(t, charged, nil)
	shop.FailNext(oncewardtest.Complete, onceward.ErrInternal)
	if name, isReplay, err := shop.call(t, "k-1", 1); name == "" || isReplay || err != nil {
		t.Errorf("%q, %v, %v", name, isReplay, err)
	}
	if _, _, err := shop.call(t, "k-1", 1); connect.CodeOf(err) != connect.CodeAborted {
		t.Errorf("a call in progress got %v", err)
	}
}

func TestMethodsThatAreNotThereAreRefused(t *testing.T) {
	options := oncewardgrpc.Options{
		Caller: func(context.Context, proto.Message) string { return "a" }, Methods: []string{"/grpc.testing.TestService/Unary"},
	}
	if _, err := oncewardconnect.Interceptor(nil, options); !errors.Is(err, onceward.ErrInvalidRequest) {
		t.Errorf("got %v", err)
	}
}

func reasonOf(err error) string {
	var failed *connect.Error
	if !errors.As(err, &failed) {
		return ""
	}
	for _, detail := range failed.Details() {
		if value, err := detail.Value(); err == nil {
			if info, isInfo := value.(*errdetails.ErrorInfo); isInfo {
				return info.GetReason()
			}
		}
	}
	return ""
}
