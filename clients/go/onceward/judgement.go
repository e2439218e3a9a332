package onceward

import (
	"context"
	"errors"
	"net"
	"net/url"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// judge returns what an error of the function means: a TerminalError to store, a NoEffectError to release the claim, or an
// OutcomeUnknownError. Before a claim that marks when its effect begins has done so, there was none.
func judge(ctx context.Context, err error, claim *Claim, operation *Operation) error {
	judged := meaningOf(ctx, err, operation)
	if unknown, unclear := judged.(*OutcomeUnknownError); unclear && claim.phase.CompareAndSwap(notBegun, neverBegins) {
		judged = &NoEffectError{Cause: unknown}
	}
	if _, releases := judged.(*NoEffectError); releases && operation.LastAttempt > 0 && claim.Attempt >= operation.LastAttempt {
		return terminalOf(err)
	}
	return judged
}

func terminalOf(err error) *TerminalError {
	return &TerminalError{Message: err.Error(), Name: typeName(err), Cause: err}
}

func meaningOf(ctx context.Context, err error, operation *Operation) error {
	if said := ownWord(err); said != nil {
		return said
	}
	switch {
	case operation.IsTerminal != nil && operation.IsTerminal(err):
		return terminalOf(err)
	case ctx.Err() != nil, isInterruption(err), operation.OnError == UnknownOnError:
		return &OutcomeUnknownError{Cause: err}
	default:
		return &NoEffectError{Cause: err}
	}
}

// ownWord returns the function's own judgement: the outermost TerminalError, OutcomeUnknownError or NoEffectError that the error is
// or wraps. Beside each other, in errors.Join, an unknown outcome counts first; nil if there is none.
func ownWord(err error) error {
	var said []error
	var unknown *OutcomeUnknownError
	if errors.As(err, &unknown) {
		said = append(said, unknown)
	}
	var terminal *TerminalError
	if errors.As(err, &terminal) {
		said = append(said, terminal)
	}
	var noEffect *NoEffectError
	if errors.As(err, &noEffect) {
		said = append(said, noEffect)
	}
	for _, each := range said {
		isWrapped := func(other error) bool { return other != each && errors.Is(other, each) }
		if !slices.ContainsFunc(said, isWrapped) {
			return each
		}
	}
	return nil
}

// isInterruption returns whether the error is or wraps an end of a context, a timeout, or one of these codes of gRPC, which does not
// wrap the context's error. Two are not: an Error of a nested run, which waited for the service, and that of a connection that was
// not made in time, so that no request was sent.
func isInterruption(err error) bool {
	switch err := err.(type) {
	case *Error:
		return false
	case *net.OpError:
		if err.Op == "dial" {
			return false
		}
	case *url.Error:
		return isInterruption(err.Err) // Its Timeout is that of the error that it wraps.
	}
	if err == context.Canceled {
		return true
	}
	if timed, has := err.(interface{ Timeout() bool }); has && timed.Timeout() {
		return true // Also context.DeadlineExceeded.
	}
	if answered, has := err.(interface{ GRPCStatus() *status.Status }); has {
		if code := answered.GRPCStatus().Code(); code == codes.Canceled || code == codes.DeadlineExceeded {
			return true
		}
	}
	switch wrapping := err.(type) {
	case interface{ Unwrap() error }:
		return isInterruption(wrapping.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(wrapping.Unwrap(), isInterruption)
	default:
		return false
	}
}
