package onceward

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/onceward/onceward/clients/go/internal/timing"
	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

// Result is the result of a run.
type Result[T any] struct {
	// What the function returned, now or before.
	Value T
	// Whether the operation was done before, so that the function did not run.
	Replayed bool
	// False if the service was unreachable and Operation.OnUnavailable is ProceedUnavailable: the function ran, and nothing was
	// stored.
	Guarded bool
	// When the operation was completed, by the database's clock.
	CompletedAt time.Time
	// When the key is forgotten: a retry after this moment is a new operation.
	ExpiresAt time.Time
	// 1 for the key's first claim, one more for each later one. 0 for a replay, and without a guard.
	Attempt int
	// 0 for a replay, and without a guard.
	FencingToken int64
}

// Run runs the function unless the operation was done before, and returns its value, now and on every repeat.
//
//   - The value is the decoded stored form, the first time too: with the default codec, what encoding/json makes of it. A type that
//     JSON would not keep whole, such as a struct with a channel or a field that is not exported, is refused before the claim.
//   - An error of the function is returned unchanged. A *TerminalError, or an error that Operation.IsTerminal calls permanent, is
//     stored, and every delivery gets it. After a *NoEffectError the claim is released, so that the next delivery runs the function
//     again. After an *OutcomeUnknownError the claim is left to its lease and the namespace's policy. Each may be wrapped.
//   - So it is after an interruption: an error that the function returns once its context has ended, an error that is or wraps
//     context.Canceled, context.DeadlineExceeded, these codes of gRPC, or one whose method Timeout returns true, unless it is of a
//     dial, before which nothing was sent; a panic, and runtime.Goexit.
//   - After any other error the claim is released, or left to the policy if Operation.OnError is UnknownOnError.
//   - While another holder runs the operation, waits for its outcome, at most Operation.Wait.
//   - The function's context ends when the caller's does, when the lease is lost (the context's cause is then an Error with
//     ErrLeaseLost, or why a heartbeat was refused), and when the client closes (ErrClosed). The function decides how it ends;
//     its outcome is stored all the same.
//   - If the caller's context ends before the function runs, Run returns its cause at once, and releases in the background a claim
//     that is granted nevertheless, but for one with Operation.ClaimID, whose effect an earlier process may have begun.
//
// Fails with InProgressError, AmbiguousError and ResultUnavailableError, when nothing ran now; with CompletionError, when the
// function ran and its outcome could not be stored; and with Error for any other failure, when nothing ran.
func Run[T any](
	ctx context.Context, client *Client, operation Operation, fn func(ctx context.Context, claim *Claim) (T, error),
) (T, error) {
	result, err := RunDetailed(ctx, client, operation, fn)
	return result.Value, err
}

// RunDetailed does what Run does, and also returns whether the value was replayed, its attempt, and when the key expires.
func RunDetailed[T any](
	ctx context.Context, client *Client, operation Operation, fn func(ctx context.Context, claim *Claim) (T, error),
) (Result[T], error) {
	var value T
	untyped := func(ctx context.Context, claim *Claim) (any, error) { return fn(ctx, claim) }
	facts, err := client.run(ctx, operation, untyped, &value)
	if err != nil {
		return Result[T]{}, err
	}
	return Result[T]{
		value, facts.replayed, facts.guarded, facts.completedAt, facts.expiresAt, facts.attempt, facts.fencingToken,
	}, nil
}

// facts are what a Result says beside its value.
type facts struct {
	replayed, guarded      bool
	completedAt, expiresAt time.Time
	attempt                int
	fencingToken           int64
}

// run does what Run promises, and reads the value into a pointer.
func (c *Client) run(
	ctx context.Context, given Operation, fn func(context.Context, *Claim) (any, error), into any,
) (*facts, error) {
	operation, refused := given.withDefaults(&c.options)
	if refused == nil {
		refused = checkType(operation.Codec, reflect.TypeOf(into).Elem())
	}
	if refused != nil {
		return nil, refused
	}
	if err := c.enter(ctx, &operation); err != nil {
		return nil, err
	}
	defer c.ended()
	waitUntil := time.Now().Add(operation.Wait)
	for {
		found, err := c.acquire(ctx, &operation, waitUntil)
		if err != nil {
			return nil, err
		}
		if found.done != nil {
			return replayed(found.done, &operation, into)
		}
		stored, open, err := c.runUnder(ctx, &operation, found, waitUntil, fn, into)
		if open == nil || err != nil {
			return stored, err
		}
		until, end := c.calls.untilClosing(ctx)
		err = sleep(until, open.retryAfter)
		end()
		if err != nil {
			return nil, err
		}
	}
}

// enter begins an operation that ended ends, unless it is refused before its claim.
func (c *Client) enter(ctx context.Context, operation *Operation) error {
	if refused := checkNotWithinItself(ctx, operation.ref()); refused != nil {
		return refused
	}
	if !c.begin() {
		return errClosed()
	}
	if timing.LooksLikeTimestamp(operation.Key) {
		c.log().Warn("A key looks like the current time: if each delivery makes its own key, each runs the operation again",
			slog.String("namespace", operation.Namespace))
	}
	if ctx.Err() != nil {
		c.ended()
		return context.Cause(ctx)
	}
	return nil
}

// replayed reads the value of an operation that was done before.
func replayed(done *oncewardv1.ClaimResponse, operation *Operation, into any) (*facts, error) {
	completed, codec := done.GetCompleted(), operation.Codec
	if operation.AtMostOnce && proto.Equal(completed.GetResult(), &oncewardv1.Result{Kind: oncewardv1.Result_KIND_SUCCESS}) {
		codec = JSONCodec{} // The claim of an earlier run has completed the key, and no codec has stored a value.
	}
	if err := replay(completed, codec, operation.ref(), into); err != nil {
		return nil, err
	}
	return &facts{
		replayed: true, guarded: true,
		completedAt: timeOf(completed.GetCompletedAt()), expiresAt: timeOf(done.GetExpiresAt()),
	}, nil
}

// runUnder calls the function under a claim, unless Operation.Resolve finds out that its effect happened before. Returns a resolution if the
// outcome is still open, and the run is to ask again.
func (c *Client) runUnder(
	ctx context.Context, operation *Operation, found *acquired, waitUntil time.Time,
	fn func(context.Context, *Claim) (any, error), into any,
) (*facts, *Resolution, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	claim := c.open(operation, found, cancel)
	defer c.close(claim)
	looked, err := lookFirst(ctx, claim, operation, waitUntil, into)
	if ambiguous := (*AmbiguousError)(nil); errors.As(err, &ambiguous) && ambiguous.Cause != nil {
		// A guard answers "ambiguous": no one else would see why.
		c.log().Warn("Resolve failed", slog.String("namespace", operation.Namespace), slog.Any("error", ambiguous.Cause))
	}
	switch {
	case err != nil:
		return nil, nil, err
	case looked.kind == outcomeOpen:
		return nil, &looked, nil
	case looked.kind == effectHappened:
		stored, err := completeEffect(claim, operation, Effect{Value: looked.value}, into)
		return stored, nil, err
	}
	value, err := claim.call(ctx, fn, func() {
		_, _ = finish(ctx, claim, operation, Effect{Err: &OutcomeUnknownError{Message: "the function panicked"}}, into)
	})
	stored, err := finish(ctx, claim, operation, Effect{value, err}, into)
	return stored, nil, err
}

// checkType refuses a type of values that the codec would store without a part of them, or could not read: the function has not run.
func checkType(codec Codec, values reflect.Type) *Error {
	if _, isJSON := codec.(JSONCodec); !isJSON {
		return nil
	}
	if flaw := (shape{kind: values, reads: true}).flaw(); flaw != "" {
		return invalidRequest(Violation{"Codec", "must be set: a value has no JSON form, because " + flaw})
	}
	return nil
}

// open returns the claim of a run that may begin, and keeps its lease.
func (c *Client) open(operation *Operation, found *acquired, cancel context.CancelCauseFunc) *Claim {
	claim := &Claim{
		Namespace: operation.Namespace, Key: operation.Key, calls: c.calls, timeout: operation.Timeout, codec: operation.Codec,
	}
	if found.unguarded != nil {
		c.log().Warn("The service is unreachable, and a function runs without a claim",
			slog.String("namespace", operation.Namespace), slog.Any("error", found.unguarded))
		return claim
	}
	claim.Guarded = true
	if found.recorded != nil {
		claim.Attempt, claim.recorded = 1, found.recorded
		return claim
	}
	claim.FencingToken = found.claimed.GetFencingToken()
	claim.Attempt = int(found.claimed.GetAttempt())
	claim.Checkpoint = readCheckpoint(found.claimed.GetCheckpoint())
	claim.earlier = found.earlier
	claim.marksBegin = operation.MarksBegin
	claim.continues = operation.ClaimID != ""
	if claim.marksBegin && found.earlier == nil && !claim.continues {
		claim.phase.Store(notBegun)
	}
	claim.lease = &lease{claim: claim.ref(), extend: claim.heartbeat, onLost: func(why *Error) { cancel(why) }}
	c.keep(claim.lease)
	claim.lease.granted(found.sentAt, found.remaining)
	return claim
}

// close ends the heartbeats of a claim.
func (c *Client) close(claim *Claim) {
	if claim.lease != nil {
		claim.lease.end()
		c.forget(claim.lease)
	}
}

// call calls the function within the claim's context. broken is called if the function panics or ends its goroutine.
func (c *Claim) call(
	ctx context.Context, fn func(context.Context, *Claim) (any, error), broken func(),
) (value any, err error) {
	c.around = enclosing(ctx)
	c.isRunning.Store(true)
	returned := false
	defer func() {
		c.isRunning.Store(false)
		if !returned {
			broken()
		}
	}()
	value, err = fn(context.WithValue(ctx, claimKey{}, c), c)
	returned = true
	return value, err
}

// checkNotWithinItself refuses a run within the function of a run with the same key: it would wait until its own caller ends, which
// waits for it. Code that a function left behind is no longer within it.
func checkNotWithinItself(ctx context.Context, operation ClaimRef) *Error {
	for claim := enclosing(ctx); claim != nil; claim = claim.around {
		if claim.isRunning.Load() && claim.Namespace == operation.Namespace && claim.Key == operation.Key {
			return invalidRequest(Violation{
				"Key", "is held by the run whose function starts this one: use another key or namespace",
			})
		}
	}
	return nil
}

// finish ends a claim by the outcome of its function: completes it, releases it, or leaves it to its lease and the namespace's
// policy if the effect may have happened.
func finish(ctx context.Context, claim *Claim, operation *Operation, effect Effect, into any) (*facts, error) {
	if marked := claim.unknown.Load(); marked != nil {
		if effect.Err == nil {
			return nil, marked
		}
		return nil, effect.Err
	}
	if effect.Err == nil {
		return completeEffect(claim, operation, effect, into)
	}
	switch judged := judge(ctx, effect.Err, claim, operation).(type) {
	case *TerminalError:
		if _, err := completeEffect(claim, operation, Effect{Err: judged}, into); err != nil {
			return nil, err
		}
		return nil, judged
	case *NoEffectError:
		claim.release(describe(effect.Err, operation))
	}
	return nil, effect.Err
}

// completeEffect stores the function's outcome, and reads the value that a repeat will get. Fails with CompletionError if the
// outcome could not be stored unchanged.
func completeEffect(claim *Claim, operation *Operation, effect Effect, into any) (*facts, error) {
	result, err := encodeAndRead(effect, operation.Codec, into)
	if err != nil {
		return nil, completeWithoutValue(claim, effect, codecError(err))
	}
	if operation.StoresMark && effect.Err == nil {
		result = markedResult()
	}
	response, failed := claim.complete(result)
	switch {
	case failed == nil:
	case failed.Reason == ErrResultTooLarge, failed.Reason == ErrInvalidRequest:
		// The service refuses the result; the claim is still held.
		return nil, completeWithoutValue(claim, effect, failed)
	default:
		return nil, newCompletionError(effect, failed, false, claim.ref())
	}
	stored := &facts{guarded: claim.Guarded, attempt: claim.Attempt, fencingToken: claim.FencingToken}
	if response == nil {
		stored.completedAt = time.Now()
		stored.expiresAt = stored.completedAt
	} else {
		stored.completedAt, stored.expiresAt = timeOf(response.GetCompletedAt()), timeOf(response.GetExpiresAt())
	}
	return stored, nil
}

// encodeAndRead returns the outcome as it is stored, and reads its value: one that can't be read now can't be replayed either.
func encodeAndRead(effect Effect, codec Codec, into any) (*oncewardv1.Result, error) {
	if marking, has := codec.(marking); has && effect.Err == nil && marking.StoresMark(effect.Value) {
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(effect.Value))
		return markedResult(), nil
	}
	result, err := encodeEffect(effect, codec)
	if err == nil && effect.Err == nil {
		err = decodeValue(result, codec, into)
	}
	return result, err
}

// completeWithoutValue stores the operation as done without its value, because its effect can't be undone.
func completeWithoutValue(claim *Claim, effect Effect, why *Error) *CompletionError {
	result, err := encodeWithoutValue(effect, why)
	if err != nil {
		return newCompletionError(effect, codecError(err), false, claim.ref())
	}
	response, failed := claim.complete(result)
	if failed != nil {
		return newCompletionError(effect, failed, false, claim.ref())
	}
	return newCompletionError(effect, why, response != nil, claim.ref())
}

// describe returns the text that is stored as the reason of a release: by default the type of the error, never its message, which
// may hold secrets.
func describe(err error, operation *Operation) string {
	if operation.DescribeError != nil {
		return operation.DescribeError(err)
	}
	return typeName(err)
}

func typeName(err error) string { return fmt.Sprintf("%T", err) }
