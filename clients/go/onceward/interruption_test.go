package onceward_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"runtime"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/onceward/onceward/clients/go/onceward"
	"github.com/onceward/onceward/clients/go/onceward/oncewardtest"
	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

// errBankSaysNo is an error of the function that says nothing about an interruption.
var errBankSaysNo = errors.New("the bank says no")

func expectState(t *testing.T, service *oncewardtest.Service, want oncewardv1.Record_State) {
	t.Helper()
	if state := service.Record("charges", "order-1").GetState(); state != want {
		t.Errorf("the record is %v, not %v", state, want)
	}
}

func TestAnInterruptedFunctionLeavesItsClaimToThePolicy(t *testing.T) {
	dialTimeout := &url.Error{Op: "Post", Err: &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}}
	noEffect := fmt.Errorf("charge: %w", &onceward.NoEffectError{Cause: context.DeadlineExceeded})
	terminal, unknown := &onceward.TerminalError{Message: "declined"}, &onceward.OutcomeUnknownError{Message: "timed out"}
	for name, each := range map[string]struct {
		err  error
		want oncewardv1.Record_State
	}{
		"a context that was cancelled":       {fmt.Errorf("charge: %w", context.Canceled), oncewardv1.Record_STATE_IN_PROGRESS},
		"a timeout of the network":           {&url.Error{Op: "Post", Err: os.ErrDeadlineExceeded}, oncewardv1.Record_STATE_IN_PROGRESS},
		"a timeout beside another error":     {errors.Join(errBankSaysNo, os.ErrDeadlineExceeded), oncewardv1.Record_STATE_IN_PROGRESS},
		"a timeout within a URL's error":     {&url.Error{Err: fmt.Errorf("dial: %w", os.ErrDeadlineExceeded)}, oncewardv1.Record_STATE_IN_PROGRESS},
		"a dial that timed out":              {dialTimeout, oncewardv1.Record_STATE_RELEASED},
		"a dial beside a timeout":            {errors.Join(dialTimeout, os.ErrDeadlineExceeded), oncewardv1.Record_STATE_IN_PROGRESS},
		"a read that timed out":              {&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, oncewardv1.Record_STATE_IN_PROGRESS},
		"a refusal of gRPC":                  {status.Error(codes.Unavailable, "bank"), oncewardv1.Record_STATE_RELEASED},
		"a nested run without an answer":     {&onceward.Error{Reason: onceward.ErrNoAnswer}, oncewardv1.Record_STATE_RELEASED},
		"no effect around an unknown one":    {&onceward.NoEffectError{Cause: &onceward.OutcomeUnknownError{}}, oncewardv1.Record_STATE_RELEASED},
		"an unknown effect around none":      {&onceward.OutcomeUnknownError{Cause: noEffect}, oncewardv1.Record_STATE_IN_PROGRESS},
		"a terminal error around no effect":  {&onceward.TerminalError{Cause: noEffect}, oncewardv1.Record_STATE_COMPLETED},
		"no effect around a terminal error":  {&onceward.NoEffectError{Cause: &onceward.TerminalError{}}, oncewardv1.Record_STATE_RELEASED},
		"an unknown effect beside none":      {errors.Join(noEffect, &onceward.OutcomeUnknownError{}), oncewardv1.Record_STATE_IN_PROGRESS},
		"a terminal error around a deadline": {&onceward.TerminalError{Cause: context.DeadlineExceeded}, oncewardv1.Record_STATE_COMPLETED},
		"a terminal error that is wrapped":   {fmt.Errorf("charge: %w", terminal), oncewardv1.Record_STATE_COMPLETED},
		"a terminal around an unknown error": {&onceward.TerminalError{Cause: unknown}, oncewardv1.Record_STATE_COMPLETED},
		"an unknown around a terminal error": {&onceward.OutcomeUnknownError{Cause: terminal}, oncewardv1.Record_STATE_IN_PROGRESS},
		"a terminal beside an unknown error": {errors.Join(terminal, unknown), oncewardv1.Record_STATE_IN_PROGRESS},
	} {
		t.Run(name, func(t *testing.T) {
			service := oncewardtest.New(t, oncewardtest.Options{})
			_, err := onceward.Run(t.Context(), service.Client, charges,
				func(context.Context, *onceward.Claim) (charge, error) { return charge{}, each.err })
			if err != each.err && each.want != oncewardv1.Record_STATE_COMPLETED {
				t.Errorf("the caller got %v", err)
			}
			expectState(t, service, each.want)
		})
	}
}

func closeAtOnce(client *onceward.Client) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = client.Close(ended)
}

func TestAFunctionThatExitsLeavesItsClaimToThePolicy(t *testing.T) {
	service := oncewardtest.New(t, oncewardtest.Options{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = onceward.Run(t.Context(), service.Client, charges,
			func(context.Context, *onceward.Claim) (charge, error) { runtime.Goexit(); return charge{}, nil })
	}()
	<-ended
	expectState(t, service, oncewardv1.Record_STATE_IN_PROGRESS)
}

func TestTheOnErrorOfAClientIsThatOfItsRuns(t *testing.T) {
	service := oncewardtest.New(t, oncewardtest.Options{Client: onceward.Options{OnError: onceward.UnknownOnError}})
	_, err := onceward.Run(t.Context(), service.Client, charges,
		func(context.Context, *onceward.Claim) (charge, error) { return charge{}, errBankSaysNo })
	if err != errBankSaysNo {
		t.Errorf("the caller got %v", err)
	}
	expectState(t, service, oncewardv1.Record_STATE_IN_PROGRESS)
}
