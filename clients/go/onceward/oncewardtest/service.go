package oncewardtest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/onceward/onceward/clients/go/onceward"
	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

// record is the record of one key, and what only the service knows of its newest claim. It needs the service's lock.
type record struct {
	// In the state of the last time when it was found.
	*oncewardv1.Record
	claimID string
	lease   time.Duration
	// Kept beyond its retention, to distinguish a repeated Complete from a different one. Nil: the claim completed the record.
	stored *oncewardv1.Result
	// The newest claim marks when its effect begins, and has not: its lease ends without an unknown outcome.
	beginsLater bool
	// The newest claim accepts ambiguity, or that which was given back did.
	acceptsAmbiguous bool
	// What the newest claim took over after its lease; nil if it took over nothing.
	unknown *record
	// The token of the claim that was given back, if the newest one is that which it had taken over.
	givenBack int64
}

// message returns the record as Lookup returns it; nil if there is none.
func (r *record) message() *oncewardv1.Record {
	if r == nil {
		return nil
	}
	return proto.CloneOf(r.Record)
}

// lost returns the record as a claim that takes it over shows it; nil if there is none.
func (r *record) lost() *oncewardv1.Ambiguous {
	if r == nil {
		return nil
	}
	return &oncewardv1.Ambiguous{Owner: r.GetOwner(), Attempt: r.GetAttempt(), LeaseExpiredAt: r.GetLeaseExpiresAt()}
}

func (r *record) leaseLeft(now time.Time) time.Duration {
	return r.GetLeaseExpiresAt().AsTime().Sub(now)
}

func (s *Service) policyOf(namespace string) Policy {
	policy, known := s.namespaces[namespace]
	if !known {
		policy = s.policy
	}
	return policy.resolved()
}

type named interface {
	GetNamespace() string
	GetKey() string
}

func nameOf(of named) [2]string { return [2]string{of.GetNamespace(), of.GetKey()} }

// find returns the record in its present state, if the key is known and its retention has not ended.
func (s *Service) find(of named) *record {
	found := s.records[nameOf(of)]
	if found == nil || !found.GetExpiresAt().AsTime().After(s.now) {
		return nil
	}
	switch {
	case found.State == oncewardv1.Record_STATE_IN_PROGRESS && found.leaseLeft(s.now) <= 0 && !found.beginsLater &&
		s.policyOf(of.GetNamespace()).holds(s.now.Sub(found.GetFirstClaimedAt().AsTime())):
		found.State = oncewardv1.Record_STATE_AMBIGUOUS
	case found.State == oncewardv1.Record_STATE_COMPLETED && !found.GetResultExpiresAt().AsTime().After(s.now):
		found.Result, found.ResultExpired = nil, true
	}
	return found
}

// own returns the record of the claim that a token names, unless it is completed or released.
func (s *Service) own(of interface {
	named
	GetFencingToken() int64
}, allowed ...oncewardv1.Record_State) (*record, error) {
	found := s.find(of)
	switch {
	case found == nil:
		return nil, refuse(onceward.ErrRecordNotFound, "There is no such record: never claimed, or its retention has ended.")
	case found.GetFencingToken() != of.GetFencingToken():
		return nil, refuse(onceward.ErrClaimSuperseded, "The fencing token does not name the key's newest claim.")
	case slices.Contains(allowed, found.State):
		return found, nil
	case found.State == oncewardv1.Record_STATE_COMPLETED:
		return nil, refuse(onceward.ErrAlreadyCompleted, "The claim was completed before.")
	case found.State == oncewardv1.Record_STATE_RELEASED:
		return nil, refuse(onceward.ErrAlreadyReleased, "The claim was released before.")
	default:
		return found, nil
	}
}

// Claim implements the RPC.
func (s *Service) Claim(ctx context.Context, request *oncewardv1.ClaimRequest) (*oncewardv1.ClaimResponse, error) {
	until := time.Now().Add(request.GetWait().AsDuration())
	return answer(s, Claim, func() (*oncewardv1.ClaimResponse, error) {
		for {
			response, count, err := s.claim(request)
			if err != nil {
				return nil, err
			}
			left := time.Until(until)
			if response.GetInProgress() == nil || left <= 0 {
				*count++
				return response, nil
			}
			if err := s.wait(ctx, left); err != nil {
				return nil, err
			}
		}
	})
}

// wait releases the lock until a record may have changed, for so long at most.
func (s *Service) wait(ctx context.Context, atMost time.Duration) error {
	changed := s.changed
	s.mu.Unlock()
	defer s.mu.Lock()
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
		return refuse(onceward.ErrCancelled, "The caller disconnected.")
	}
	return nil
}

// claim makes one attempt, and returns the number of the claims with its outcome.
func (s *Service) claim(request *oncewardv1.ClaimRequest) (*oncewardv1.ClaimResponse, *int, error) {
	policy := s.policyOf(request.GetNamespace())
	made, hasTime, err := checkClaim(request, policy, s.now)
	if err != nil {
		return nil, nil, err
	}
	met := s.find(request)
	if met == nil {
		met = &record{Record: &oncewardv1.Record{}}
		if until := made.Add(policy.KeyRetention); hasTime && !s.now.Before(until) {
			return nil, nil, refuseOld(made, until)
		}
	}
	if len(met.GetFingerprint()) > 0 && len(request.GetFingerprint()) > 0 &&
		!bytes.Equal(met.GetFingerprint(), request.GetFingerprint()) {
		return nil, nil, refuse(onceward.ErrFingerprintMismatch, "The key is bound to another request: its fingerprint differs.")
	}
	response := &oncewardv1.ClaimResponse{ServerTime: timestamppb.New(s.now)}
	count := &s.counts.Granted
	runs := met.State == oncewardv1.Record_STATE_IN_PROGRESS && met.leaseLeft(s.now) > 0
	own := request.GetClaimId() != "" && request.GetClaimId() == met.claimID
	switch {
	case met.State == oncewardv1.Record_STATE_COMPLETED && met.stored == nil && own && request.GetCompletion() != nil:
		response.Outcome = recorded(met)
		count = &s.counts.Recovered
	case met.State == oncewardv1.Record_STATE_COMPLETED:
		response.Outcome = &oncewardv1.ClaimResponse_Completed{Completed: &oncewardv1.Completed{
			CompletedAt: met.GetCompletedAt(), Result: met.GetResult(), ResultExpired: met.GetResultExpired(),
		}}
		count = &s.counts.Replayed
	case met.State == oncewardv1.Record_STATE_AMBIGUOUS && !request.GetAcceptAmbiguous():
		response.Outcome = &oncewardv1.ClaimResponse_Ambiguous{Ambiguous: &oncewardv1.Ambiguous{
			Owner: met.GetOwner(), Attempt: met.GetAttempt(), LeaseExpiredAt: met.GetLeaseExpiresAt(), Checkpoint: met.GetCheckpoint(),
		}}
		count = &s.counts.Ambiguous
	case runs && !own:
		response.Outcome = &oncewardv1.ClaimResponse_InProgress{InProgress: &oncewardv1.InProgress{
			Owner: met.GetOwner(), Attempt: met.GetAttempt(), LeaseExpiresAt: met.GetLeaseExpiresAt(),
			RetryAfter: durationpb.New(max(10*time.Millisecond, min(time.Second, met.leaseLeft(s.now)))),
		}}
		count = &s.counts.InProgress
	default:
		if runs {
			count = &s.counts.Recovered
		} else {
			met = s.grant(request, met, policy)
		}
		if met.State == oncewardv1.Record_STATE_COMPLETED {
			response.Outcome = recorded(met)
			break
		}
		response.Outcome = &oncewardv1.ClaimResponse_Claimed{Claimed: &oncewardv1.Claimed{
			FencingToken: met.GetFencingToken(), Attempt: met.GetAttempt(), FirstClaimedAt: met.GetFirstClaimedAt(),
			LeaseExpiresAt: met.GetLeaseExpiresAt(), LeaseRemaining: durationpb.New(met.leaseLeft(s.now)), Checkpoint: met.GetCheckpoint(),
			Unknown: met.unknown.lost(),
		}}
	}
	response.ExpiresAt = met.GetExpiresAt()
	return response, count, nil
}

func recorded(completed *record) *oncewardv1.ClaimResponse_Recorded {
	return &oncewardv1.ClaimResponse_Recorded{Recorded: &oncewardv1.Recorded{CompletedAt: completed.GetCompletedAt()}}
}

// grant keeps a claim; previous is the record that it takes over, as a further attempt, or an empty one.
func (s *Service) grant(request *oncewardv1.ClaimRequest, previous *record, policy Policy) *record {
	lease := policy.DefaultLease
	if request.GetLease() != nil {
		lease = request.GetLease().AsDuration()
	}
	if request.GetCompletion() != nil {
		lease = 0
	}
	s.lastToken++
	granted := &record{claimID: request.GetClaimId(), lease: lease, beginsLater: request.GetMarksBegin(), Record: &oncewardv1.Record{
		Namespace: request.GetNamespace(), Key: request.GetKey(), Owner: request.GetOwner(),
		State: oncewardv1.Record_STATE_IN_PROGRESS, FencingToken: s.lastToken, Attempt: previous.GetAttempt() + 1,
		Fingerprint: previous.GetFingerprint(), Checkpoint: previous.GetCheckpoint(),
		FirstClaimedAt: cmp.Or(previous.GetFirstClaimedAt(), timestamppb.New(s.now)), ClaimedAt: timestamppb.New(s.now),
		LeaseExpiresAt: timestamppb.New(s.now.Add(lease)),
		ExpiresAt:      timestamppb.New(s.now.Add(max(policy.kept(policy.KeyRetention), lease))),
	}}
	state := previous.GetState()
	isOver := state == oncewardv1.Record_STATE_AMBIGUOUS || state == oncewardv1.Record_STATE_IN_PROGRESS
	if isOver && !previous.beginsLater {
		granted.beginsLater, granted.unknown = false, previous
	}
	granted.acceptsAmbiguous = request.GetAcceptAmbiguous()
	if len(granted.Fingerprint) == 0 {
		granted.Fingerprint = request.GetFingerprint()
	}
	if request.GetCompletion() != nil {
		granted.State, granted.Result = oncewardv1.Record_STATE_COMPLETED, &oncewardv1.Result{Kind: oncewardv1.Result_KIND_SUCCESS}
		granted.CompletedAt, granted.ResultExpiresAt = granted.GetClaimedAt(), granted.GetExpiresAt()
	}
	s.records[nameOf(request)] = granted
	return granted
}

// Complete implements the RPC.
func (s *Service) Complete(
	_ context.Context, request *oncewardv1.CompleteRequest,
) (*oncewardv1.CompleteResponse, error) {
	return answer(s, Complete, func() (*oncewardv1.CompleteResponse, error) {
		var found violations
		found.addIf(request.GetRetention() != nil, "retention", noRetention)
		if err := found.refusal(); err != nil {
			return nil, err
		}
		policy := s.policyOf(request.GetNamespace())
		if sizeOf(request.GetResult()) > policy.MaxResultBytes {
			message := fmt.Sprintf("The policy allows results of %d bytes with their metadata.", policy.MaxResultBytes)
			return nil, refuse(onceward.ErrResultTooLarge, message)
		}
		held, err := s.own(request, oncewardv1.Record_STATE_COMPLETED)
		if err != nil {
			return nil, err
		}
		again := held.State == oncewardv1.Record_STATE_COMPLETED
		if again && !proto.Equal(held.stored, request.GetResult()) {
			return nil, refuse(onceward.ErrAlreadyCompleted, "The claim was completed before, with another result.")
		}
		if !again {
			replayed := policy.ResultRetention
			if request.GetResult().GetKind() == oncewardv1.Result_KIND_FAILURE {
				replayed = policy.FailureRetention
			}
			held.stored = request.GetResult()
			held.State, held.Result, held.CompletedAt = oncewardv1.Record_STATE_COMPLETED, held.stored, timestamppb.New(s.now)
			held.ResultExpiresAt = timestamppb.New(s.now.Add(policy.kept(replayed)))
			held.ExpiresAt = timestamppb.New(s.now.Add(policy.kept(policy.KeyRetention)))
			s.notify()
		}
		return &oncewardv1.CompleteResponse{
			CompletedAt: held.GetCompletedAt(), ExpiresAt: held.GetExpiresAt(), AlreadyCompleted: again,
		}, nil
	})
}

// sizeOf returns the bytes of a result: its payload, and its metadata as compact JSON.
func sizeOf(result *oncewardv1.Result) int {
	metadata := new(bytes.Buffer)
	if len(result.GetMetadata()) > 0 {
		encoder := json.NewEncoder(metadata)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(result.GetMetadata()) // Texts alone, written to memory.
		metadata.Truncate(metadata.Len() - len("\n"))
	}
	return len(result.GetPayload()) + metadata.Len()
}

// Release implements the RPC.
func (s *Service) Release(_ context.Context, request *oncewardv1.ReleaseRequest) (*oncewardv1.ReleaseResponse, error) {
	return answer(s, Release, func() (*oncewardv1.ReleaseResponse, error) {
		found, token := s.find(request), request.GetFencingToken()
		if found != nil && found.givenBack != 0 && found.givenBack == token && (request.GetGiveBack() || !found.acceptsAmbiguous) {
			return &oncewardv1.ReleaseResponse{ExpiresAt: found.GetExpiresAt()}, nil
		}
		held, err := s.own(request, oncewardv1.Record_STATE_RELEASED)
		if err != nil {
			return nil, err
		}
		policy := s.policyOf(request.GetNamespace())
		isLimited := (policy.Hold || policy.ReclaimWithin > 0) && (!held.acceptsAmbiguous || held.givenBack != 0)
		if last := held.unknown; last != nil && held.State != oncewardv1.Record_STATE_RELEASED && (request.GetGiveBack() || isLimited) {
			if held.givenBack != 0 { // What was given back can't be given back a second time.
				return &oncewardv1.ReleaseResponse{ExpiresAt: held.GetExpiresAt()}, nil
			}
			held.givenBack, held.claimID, held.FencingToken = held.FencingToken, "", last.GetFencingToken()
			held.Attempt, held.Owner = last.GetAttempt(), last.GetOwner()
			held.ClaimedAt, held.LeaseExpiresAt = last.GetClaimedAt(), last.GetLeaseExpiresAt()
			held.unknown = last.unknown
			s.notify()
		} else if held.State != oncewardv1.Record_STATE_RELEASED {
			held.State, held.ReleaseReason = oncewardv1.Record_STATE_RELEASED, request.GetReason()
			held.ReleasedAt = timestamppb.New(s.now)
			s.notify()
		}
		return &oncewardv1.ReleaseResponse{ExpiresAt: held.GetExpiresAt()}, nil
	})
}

// ExtendLease implements the RPC.
func (s *Service) ExtendLease(
	_ context.Context, request *oncewardv1.ExtendLeaseRequest,
) (*oncewardv1.ExtendLeaseResponse, error) {
	return answer(s, ExtendLease, func() (*oncewardv1.ExtendLeaseResponse, error) {
		var found violations
		found.lease(request.GetLease(), s.policyOf(request.GetNamespace()))
		if err := found.refusal(); err != nil {
			return nil, err
		}
		held, err := s.own(request)
		if err != nil {
			return nil, err
		}
		lease := held.lease
		if request.GetLease() != nil {
			lease = request.GetLease().AsDuration()
		}
		left := max(lease, held.leaseLeft(s.now))
		held.beginsLater = held.beginsLater && !request.GetBegin()
		held.State = oncewardv1.Record_STATE_IN_PROGRESS
		held.LeaseExpiresAt = timestamppb.New(s.now.Add(left))
		if held.GetExpiresAt().AsTime().Before(s.now.Add(left)) {
			held.ExpiresAt = held.LeaseExpiresAt
		}
		if request.GetCheckpoint() != nil {
			held.Checkpoint = request.GetCheckpoint()
		}
		return &oncewardv1.ExtendLeaseResponse{
			LeaseExpiresAt: held.GetLeaseExpiresAt(), LeaseRemaining: durationpb.New(left), ExpiresAt: held.GetExpiresAt(),
		}, nil
	})
}

// Lookup implements the RPC.
func (s *Service) Lookup(_ context.Context, request *oncewardv1.LookupRequest) (*oncewardv1.LookupResponse, error) {
	return answer(s, Lookup, func() (*oncewardv1.LookupResponse, error) {
		return &oncewardv1.LookupResponse{ServerTime: timestamppb.New(s.now), Record: s.find(request).message()}, nil
	})
}

// Batch implements the RPC: its calls, one after another.
func (s *Service) Batch(ctx context.Context, request *oncewardv1.BatchRequest) (*oncewardv1.BatchResponse, error) {
	response := &oncewardv1.BatchResponse{}
	for _, each := range request.GetItems() {
		item := each.ProtoReflect()
		field := item.WhichOneof(item.Descriptor().Oneofs().ByName("request"))
		if field == nil {
			return nil, refuse(onceward.ErrInvalidRequest, "an item without a request")
		}
		reply := &oncewardv1.BatchResponseItem{}
		if answered, err := s.call(ctx, item.Get(field).Message().Interface()); err != nil {
			reply.Response = &oncewardv1.BatchResponseItem_Error{Error: itemError(err)}
		} else {
			ofReply := reply.ProtoReflect().Descriptor().Fields().ByName(field.Name())
			reply.ProtoReflect().Set(ofReply, protoreflect.ValueOfMessage(answered.ProtoReflect()))
		}
		response.Items = append(response.Items, reply)
	}
	return response, nil
}

func (s *Service) call(ctx context.Context, request proto.Message) (proto.Message, error) {
	switch request := request.(type) {
	case *oncewardv1.ClaimRequest:
		return s.Claim(ctx, request)
	case *oncewardv1.CompleteRequest:
		return s.Complete(ctx, request)
	case *oncewardv1.ReleaseRequest:
		return s.Release(ctx, request)
	case *oncewardv1.ExtendLeaseRequest:
		return s.ExtendLease(ctx, request)
	default:
		return s.Lookup(ctx, request.(*oncewardv1.LookupRequest))
	}
}

// answer makes a call under the lock, or injects a fault.
func answer[Response any](s *Service, call Call, make func() (*Response, error)) (*Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.faults, func(pending *fault) bool { return pending.call == call })
	if at < 0 {
		return make()
	}
	injected := s.faults[at]
	s.faults = slices.Delete(s.faults, at, at+1)
	if injected.reason != "" {
		return nil, refuse(injected.reason, "The test lets this "+string(call)+" fail.")
	}
	if _, err := make(); err != nil {
		return nil, err
	}
	return nil, refuse(onceward.ErrDatabaseUnavailable, "The test lets the reply to this "+string(call)+" get lost.")
}

// notify wakes the calls that wait: a record was settled, or the clock has advanced.
func (s *Service) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}
