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
	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
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
		Logger:    slog.New(slog.NewTextHandler(io.Discard, nil)),
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

func TestAnyOtherFailureReleasesTheClaimOrLeavesItToThePolicy(t *testing.T) {
	coded := func(code connect.Code, cause error) error { return connect.NewError(code, cause) }
	bank := errors.New("bank")
	const released, unknown = oncewardv1.Record_STATE_RELEASED, oncewardv1.Record_STATE_IN_PROGRESS
	for name, each := range map[string]struct {
		failure error
		want    oncewardv1.Record_State
	}{
		"a code":                          {coded(connect.CodeInternal, bank), released},
		"a TerminalError of a nested run": {&onceward.TerminalError{Message: "declined"}, released},
		"no effect, in a code":            {coded(connect.CodeNotFound, &onceward.NoEffectError{Message: "closed"}), released},
		"an unknown effect, in a code":    {coded(connect.CodeFailedPrecondition, &onceward.OutcomeUnknownError{Cause: bank}), unknown},
		"a connection that broke":         {coded(connect.CodeUnavailable, bank), unknown},
		"an unknown error":                {coded(connect.CodeUnknown, bank), unknown},
		"a call that was cut":             {coded(connect.CodeCanceled, bank), unknown},
	} {
		shop := start(t, func(context.Context, *connect.Request[request]) (*connect.Response[response], error) {
			return nil, each.failure
		}, nil)
		if _, _, err := shop.call(t, "k-1", 1); connect.CodeOf(err) != connect.CodeOf(each.failure) {
			t.Errorf("%s: the caller got %v", name, err)
		}
		if state := shop.Record("charges", procedure+":a:k-1").GetState(); state != each.want {
			t.Errorf("%s: the record is %v", name, state)
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
