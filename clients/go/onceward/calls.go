package onceward

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/onceward/onceward/clients/go/internal/timing"
	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

// A replica that has not answered by then is stuck or unreachable, and another attempt is better.
const attemptTimeout = 5 * time.Second

// calls makes the calls of one client, one attempt each. Concurrent calls are gathered into batches.
type calls struct {
	api      oncewardv1.IdempotencyServiceClient
	gatherer *gatherer
	// Ends, with ErrClosed, when the client begins to close.
	closing      context.Context
	beginClosing context.CancelCauseFunc
	// Ends, with ErrClosed, once no further call is made.
	open       context.Context
	disconnect context.CancelCauseFunc
}

func newCalls(connection grpc.ClientConnInterface) *calls {
	made := &calls{api: oncewardv1.NewIdempotencyServiceClient(connection)}
	made.gatherer = &gatherer{send: made.sendBatch}
	made.closing, made.beginClosing = context.WithCancelCause(context.Background())
	made.open, made.disconnect = context.WithCancelCause(context.Background())
	return made
}

// untilClosing returns a context that also ends when the client begins to close.
func (c *calls) untilClosing(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.closing, func() { cancel(context.Cause(c.closing)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// call is a call that was started. Its answer is there once done is closed.
type call struct {
	item  *oncewardv1.BatchRequestItem
	bytes int
	done  chan struct{}
	reply *oncewardv1.BatchResponseItem
	err   *Error
}

func (c *call) answer(reply *oncewardv1.BatchResponseItem, err *Error) {
	c.reply, c.err = reply, err
	close(c.done)
}

// start starts a call. Its answer does not depend on the caller's context: others may be gathered with it.
func (c *calls) start(item *oncewardv1.BatchRequestItem) *call {
	started := &call{item: item, done: make(chan struct{})}
	if c.open.Err() != nil {
		started.answer(nil, errClosed())
		return started
	}
	c.gatherer.add(started)
	return started
}

// startWithin starts a call that may be without an answer for so long: alone if that is shorter than usual, because the heartbeat of a
// short lease has no time to wait for batches on a connection that is silent.
func (c *calls) startWithin(item *oncewardv1.BatchRequestItem, timeout time.Duration) *call {
	if timeout >= attemptTimeout || c.open.Err() != nil {
		return c.start(item)
	}
	started := &call{item: item, done: make(chan struct{})}
	go func() { started.answer(c.sendWithin(c.open, item, timeout)) }()
	return started
}

// startWaiting starts a Claim that waits for another holder: an RPC of its own, so that no batch waits.
func (c *calls) startWaiting(ctx context.Context, request *oncewardv1.ClaimRequest) *call {
	item := claimItem(request)
	started := &call{item: item, done: make(chan struct{})}
	go func() {
		reply, err := c.sendWithin(ctx, item, request.GetWait().AsDuration()+attemptTimeout)
		started.answer(reply, err)
	}()
	return started
}

// wait returns the answer, or why the context ended before it.
func (c *call) wait(ctx context.Context) (*oncewardv1.BatchResponseItem, error) {
	select {
	case <-c.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if c.err != nil {
		return nil, c.err
	}
	return c.reply, nil
}

// do makes a call.
func (c *calls) do(ctx context.Context, item *oncewardv1.BatchRequestItem) (*oncewardv1.BatchResponseItem, error) {
	return c.start(item).wait(ctx)
}

// sendWithin makes a call with its own RPC.
func (c *calls) sendWithin(
	ctx context.Context, item *oncewardv1.BatchRequestItem, timeout time.Duration,
) (*oncewardv1.BatchResponseItem, *Error) {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, timeoutKey{}, timeout), timeout)
	defer cancel()
	reply := &oncewardv1.BatchResponseItem{}
	var err error
	switch request := item.GetRequest().(type) {
	case *oncewardv1.BatchRequestItem_Claim:
		response := &oncewardv1.BatchResponseItem_Claim{}
		response.Claim, err = c.api.Claim(ctx, request.Claim)
		reply.Response = response
	case *oncewardv1.BatchRequestItem_Complete:
		response := &oncewardv1.BatchResponseItem_Complete{}
		response.Complete, err = c.api.Complete(ctx, request.Complete)
		reply.Response = response
	case *oncewardv1.BatchRequestItem_Release:
		response := &oncewardv1.BatchResponseItem_Release{}
		response.Release, err = c.api.Release(ctx, request.Release)
		reply.Response = response
	case *oncewardv1.BatchRequestItem_ExtendLease:
		response := &oncewardv1.BatchResponseItem_ExtendLease{}
		response.ExtendLease, err = c.api.ExtendLease(ctx, request.ExtendLease)
		reply.Response = response
	case *oncewardv1.BatchRequestItem_Lookup:
		response := &oncewardv1.BatchResponseItem_Lookup{}
		response.Lookup, err = c.api.Lookup(ctx, request.Lookup)
		reply.Response = response
	default:
		panic(fmt.Sprintf("onceward: no call is a %T", request))
	}
	if err != nil {
		return nil, errorFromCall(err)
	}
	return reply, nil
}

func claimItem(request *oncewardv1.ClaimRequest) *oncewardv1.BatchRequestItem {
	return &oncewardv1.BatchRequestItem{Request: &oncewardv1.BatchRequestItem_Claim{Claim: request}}
}

func completeItem(request *oncewardv1.CompleteRequest) *oncewardv1.BatchRequestItem {
	return &oncewardv1.BatchRequestItem{Request: &oncewardv1.BatchRequestItem_Complete{Complete: request}}
}

func releaseItem(request *oncewardv1.ReleaseRequest) *oncewardv1.BatchRequestItem {
	return &oncewardv1.BatchRequestItem{Request: &oncewardv1.BatchRequestItem_Release{Release: request}}
}

func extendLeaseItem(request *oncewardv1.ExtendLeaseRequest) *oncewardv1.BatchRequestItem {
	return &oncewardv1.BatchRequestItem{Request: &oncewardv1.BatchRequestItem_ExtendLease{ExtendLease: request}}
}

func lookupItem(request *oncewardv1.LookupRequest) *oncewardv1.BatchRequestItem {
	return &oncewardv1.BatchRequestItem{Request: &oncewardv1.BatchRequestItem_Lookup{Lookup: request}}
}

// retry repeats an attempt that is safe to repeat (the same claim id, the same fencing token) until it is answered, with
// growing, jittered delays that are never shorter than the service asked for. No attempt begins after giveUpAt, nor after the
// context's end, whose cause it then returns.
func retry(ctx context.Context, giveUpAt time.Time, attempt func() error) error {
	return repeat(ctx, giveUpAt, (*Error).isToBeRepeated, attempt)
}

// retryHeld is retry for a call of a claim that is held.
func retryHeld(ctx context.Context, giveUpAt time.Time, attempt func() error) error {
	return repeat(ctx, giveUpAt, (*Error).isToBeRepeatedHeld, attempt)
}

func repeat(ctx context.Context, giveUpAt time.Time, isToBeRepeated func(*Error) bool, attempt func() error) error {
	for failures := 0; ; failures++ {
		err := attempt()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		failed := errorFromCall(err)
		delay := timing.RetryDelay(failures, failed.RetryDelay)
		if !isToBeRepeated(failed) || time.Now().Add(delay).After(giveUpAt) {
			return failed
		}
		if err := sleep(ctx, delay); err != nil {
			return err
		}
	}
}

// sleep returns nil after the delay, or why the context ended before.
func sleep(ctx context.Context, delay time.Duration) error {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
