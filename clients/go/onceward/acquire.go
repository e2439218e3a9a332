package onceward

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/onceward/onceward/clients/go/internal/timing"
	"github.com/onceward/onceward/clients/go/onceward/internal/limits"
	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

// Pauses of a process are rare: more late answers in turn mean a lease that is shorter than the answers take.
const maxLateAnswers = 3

// acquired is how a run begins: with one of claimed, done, recorded and unguarded.
type acquired struct {
	// The lease lasts: the function may begin at once.
	claimed   *oncewardv1.Claimed
	sentAt    time.Duration
	remaining time.Duration
	// The earlier attempt whose outcome is unknown; nil without one.
	earlier *unknownAttempt
	// The operation was done before.
	done *oncewardv1.ClaimResponse
	// What the service answered to a claim that has completed the key itself.
	recorded *oncewardv1.CompleteResponse
	// The service is unreachable, and the function runs without a claim.
	unguarded *Error
}

// acquisition gets the claim of one run: waits, retries, renews a lease whose answer came late, or ends with a stored result;
// always under one claim id.
type acquisition struct {
	calls     *calls
	operation *Operation
	request   *oncewardv1.ClaimRequest
	sent      pendingClaims
	// When the last Claim was sent: a granted lease counts from then.
	sentAt time.Duration
}

// acquire claims, and waits for another holder. If the context ends before the function may begin, returns its cause. After
// every error, a claim that was granted nevertheless is released in the background, but for one with the caller's ClaimID: an
// earlier process may have begun its effect.
func (c *Client) acquire(ctx context.Context, operation *Operation, waitUntil time.Time) (*acquired, error) {
	request, refused := operation.request()
	if refused != nil {
		return nil, refused.about(operation.ref())
	}
	request.ClaimId = firstSet(operation.ClaimID, newClaimID())
	run := &acquisition{calls: c.calls, operation: operation, request: request}
	ctx, end := c.calls.untilClosing(ctx)
	defer end()
	found, err := run.claimOrWait(ctx, waitUntil)
	if err == nil {
		return found, nil
	}
	if run.sent.mayBeHeld() && !operation.AtMostOnce && operation.ClaimID == "" {
		c.inBackground(run.releaseUnusedClaim)
	}
	if failed, isOwn := err.(*Error); isOwn {
		return nil, failed.about(operation.ref())
	}
	return nil, err
}

func newClaimID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // Never fails.
	return hex.EncodeToString(id[:])
}

func (a *acquisition) claimOrWait(ctx context.Context, waitUntil time.Time) (*acquired, error) {
	response, err := a.claim(ctx)
	if err != nil {
		// Only for the first call: once the service has named another holder, an outage doesn't make that untrue.
		var failed *Error
		proceeds := a.operation.OnUnavailable == ProceedUnavailable && ctx.Err() == nil
		if proceeds && errors.As(err, &failed) && failed.isUnreachable() {
			return &acquired{unguarded: failed}, nil
		}
		return nil, err
	}
	for lostClaims := 0; ; {
		switch outcome := response.GetOutcome().(type) {
		case *oncewardv1.ClaimResponse_Claimed:
			earlier := a.unknownAttemptOf(response)
			granted, err := a.renewIfLate(ctx, outcome.Claimed)
			if granted != nil {
				granted.earlier = earlier
			}
			if granted != nil || err != nil {
				return granted, err
			}
			if lostClaims++; lostClaims > maxLateAnswers {
				return nil, alwaysLate()
			}
			response, err = a.claim(ctx)
			if err != nil {
				return nil, err
			}
		case *oncewardv1.ClaimResponse_Completed:
			return &acquired{done: response}, nil
		case *oncewardv1.ClaimResponse_Recorded:
			return &acquired{recorded: &oncewardv1.CompleteResponse{
				CompletedAt: outcome.Recorded.GetCompletedAt(), ExpiresAt: response.GetExpiresAt(),
			}}, nil
		case *oncewardv1.ClaimResponse_Ambiguous:
			return nil, ambiguous(a.operation.ref(), outcome.Ambiguous)
		case *oncewardv1.ClaimResponse_InProgress:
			if !time.Now().Before(waitUntil) {
				return nil, inProgress(a.operation.ref(), outcome.InProgress)
			}
			if response, err = a.wait(ctx, waitUntil); err != nil {
				return nil, err
			}
			// A lease counts from when its call was sent, and the waiting call was sent long ago. The same claim again returns a
			// lease that counts from now.
			if response.GetClaimed() != nil {
				if response, err = a.claim(ctx); err != nil {
					return nil, err
				}
			}
		default:
			return nil, &Error{
				Reason: ErrInternal, Message: "The claim was answered with an outcome that this client does not know.",
			}
		}
	}
}

// claim claims, and retries until the operation's timeout.
func (a *acquisition) claim(ctx context.Context) (*oncewardv1.ClaimResponse, error) {
	var response *oncewardv1.ClaimResponse
	err := retry(ctx, time.Now().Add(a.operation.Timeout), func() error {
		a.sentAt = leaseNow()
		reply, err := a.sent.await(ctx, a.calls.start(claimItem(a.request)))
		response = reply.GetClaim()
		return err
	})
	return response, err
}

// wait waits for another holder, in one call of the service.
func (a *acquisition) wait(ctx context.Context, until time.Time) (*oncewardv1.ClaimResponse, error) {
	left := func() time.Duration { return max(0, min(limits.MaxWait, time.Until(until))) }
	var response *oncewardv1.ClaimResponse
	err := retry(ctx, until.Add(a.operation.Timeout), func() error {
		request := proto.CloneOf(a.request)
		request.Wait = durationpb.New(left())
		reply, err := a.sent.await(ctx, a.calls.startWaiting(ctx, request))
		response = reply.GetClaim()
		return err
	})
	if err == nil && response.GetInProgress() != nil && left() > 0 {
		err = sleep(ctx, min(left(), timing.RetryDelay(0, response.GetInProgress().GetRetryAfter().AsDuration())))
	}
	return response, err
}

// renewIfLate returns the claim with a lease that lasts now; nil if the claim is gone: claim again.
//
// An answer may come after the lease that it grants: the process was stopped, or the network was slow. Until another holder has
// taken over, a heartbeat renews the lease, also after its end. It is preferred to another Claim, which would count as one more
// attempt, or make the record ambiguous although nothing ran.
func (a *acquisition) renewIfLate(ctx context.Context, claimed *oncewardv1.Claimed) (*acquired, error) {
	granted := &acquired{claimed: claimed, sentAt: a.sentAt, remaining: claimed.GetLeaseRemaining().AsDuration()}
	for answers := 1; leaseNow() >= timing.LeaseEnd(granted.sentAt, granted.remaining); answers++ {
		if answers > maxLateAnswers {
			return nil, alwaysLate()
		}
		err := retry(ctx, time.Now().Add(a.operation.Timeout), func() error {
			granted.sentAt = leaseNow()
			reply, err := a.calls.do(ctx, extendLeaseItem(&oncewardv1.ExtendLeaseRequest{
				Namespace: a.operation.Namespace, Key: a.operation.Key, FencingToken: claimed.GetFencingToken(),
			}))
			granted.remaining = reply.GetExtendLease().GetLeaseRemaining().AsDuration()
			return err
		})
		if err != nil {
			var failed *Error
			if ctx.Err() == nil && errors.As(err, &failed) && failed.isClaimGone() && failed.Reason != ErrClosed {
				return nil, nil
			}
			return nil, err
		}
	}
	return granted, nil
}

func alwaysLate() *Error {
	return &Error{
		Reason: ErrDeadlineExceeded, Message: "Each answer of the service came after the lease that it granted.",
	}
}

func inProgress(claim ClaimRef, holder *oncewardv1.InProgress) *InProgressError {
	return &InProgressError{
		Err: &Error{
			Reason:     ErrInProgress,
			Message:    "Attempt " + attemptText(holder.GetAttempt(), holder.GetOwner()) + " is in progress.",
			Claim:      &claim,
			RetryDelay: holder.GetRetryAfter().AsDuration(),
			saysWhen:   true,
		},
		Owner:          holder.GetOwner(),
		Attempt:        int(holder.GetAttempt()),
		LeaseExpiresAt: timeOf(holder.GetLeaseExpiresAt()),
	}
}

func ambiguous(claim ClaimRef, last *oncewardv1.Ambiguous) *AmbiguousError {
	return &AmbiguousError{
		Err: &Error{
			Reason:  ErrAmbiguous,
			Message: "It is unknown whether attempt " + attemptText(last.GetAttempt(), last.GetOwner()) + " had its effect.",
			Claim:   &claim,
		},
		Owner:          last.GetOwner(),
		Attempt:        int(last.GetAttempt()),
		LeaseExpiredAt: timeOf(last.GetLeaseExpiredAt()),
		Checkpoint:     readCheckpoint(last.GetCheckpoint()),
	}
}

// timeOf returns a time of the service; the zero time if it sent none.
func timeOf(timestamp *timestamppb.Timestamp) time.Time {
	if timestamp == nil {
		return time.Time{}
	}
	return timestamp.AsTime()
}
