package oncewardtest

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/onceward/onceward/clients/go/onceward"
	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

// A wait ends this long before the caller's deadline, so that its reply still arrives.
const replyMargin = 100 * time.Millisecond

// Claim implements the RPC.
func (s *Service) Claim(ctx context.Context, request *oncewardv1.ClaimRequest) (*oncewardv1.ClaimResponse, error) {
	until := time.Now().Add(request.GetWait().AsDuration())
	if deadline, has := ctx.Deadline(); has && deadline.Add(-replyMargin).Before(until) {
		until = deadline.Add(-replyMargin)
	}
	for {
		response, changed, err := s.claimOnce(request)
		left := time.Until(until)
		if err != nil || response.GetInProgress() == nil || left <= 0 {
			return response, err
		}
		timer := time.NewTimer(left)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, refuse(onceward.ErrCancelled, "The caller disconnected.")
		}
		timer.Stop()
	}
}

func (s *Service) claimOnce(
	request *oncewardv1.ClaimRequest,
) (response *oncewardv1.ClaimResponse, changed <-chan struct{}, err error) {
	// Before the claim: a change in between wakes at once.
	s.mu.Lock()
	changed = s.changed
	now := s.now
	s.mu.Unlock()
	if err := checkClaim(request, s.policyOf(request.GetNamespace()), now); err != nil {
		return nil, nil, err
	}
	response, err = answer(s, Claim, request, s.claim)
	return response, changed, err
}

// Complete implements the RPC.
func (s *Service) Complete(
	_ context.Context, request *oncewardv1.CompleteRequest,
) (*oncewardv1.CompleteResponse, error) {
	if err := checkComplete(request, s.policyOf(request.GetNamespace())); err != nil {
		return nil, err
	}
	return answer(s, Complete, request, s.complete)
}

// Release implements the RPC.
func (s *Service) Release(_ context.Context, request *oncewardv1.ReleaseRequest) (*oncewardv1.ReleaseResponse, error) {
	if err := checkRelease(request); err != nil {
		return nil, err
	}
	return answer(s, Release, request, s.release)
}

// ExtendLease implements the RPC.
func (s *Service) ExtendLease(
	_ context.Context, request *oncewardv1.ExtendLeaseRequest,
) (*oncewardv1.ExtendLeaseResponse, error) {
	if err := checkExtendLease(request, s.policyOf(request.GetNamespace())); err != nil {
		return nil, err
	}
	return answer(s, ExtendLease, request, s.extendLease)
}

// Lookup implements the RPC.
func (s *Service) Lookup(_ context.Context, request *oncewardv1.LookupRequest) (*oncewardv1.LookupResponse, error) {
	return answer(s, Lookup, request, func(request *oncewardv1.LookupRequest) (*oncewardv1.LookupResponse, error) {
		response := &oncewardv1.LookupResponse{ServerTime: timestamppb.New(s.now)}
		if found := s.find(recordID{request.GetNamespace(), request.GetKey()}); found != nil {
			response.Record = found.message(s.now)
		}
		return response, nil
	})
}

// Batch implements the RPC: its calls, one after another.
func (s *Service) Batch(ctx context.Context, request *oncewardv1.BatchRequest) (*oncewardv1.BatchResponse, error) {
	response := &oncewardv1.BatchResponse{}
	for _, item := range request.GetItems() {
		reply := &oncewardv1.BatchResponseItem{}
		var err error
		switch call := item.GetRequest().(type) {
		case *oncewardv1.BatchRequestItem_Claim:
			item := &oncewardv1.BatchResponseItem_Claim{}
			item.Claim, err = s.Claim(ctx, call.Claim)
			reply.Response = item
		case *oncewardv1.BatchRequestItem_Complete:
			item := &oncewardv1.BatchResponseItem_Complete{}
			item.Complete, err = s.Complete(ctx, call.Complete)
			reply.Response = item
		case *oncewardv1.BatchRequestItem_Release:
			item := &oncewardv1.BatchResponseItem_Release{}
			item.Release, err = s.Release(ctx, call.Release)
			reply.Response = item
		case *oncewardv1.BatchRequestItem_ExtendLease:
			item := &oncewardv1.BatchResponseItem_ExtendLease{}
			item.ExtendLease, err = s.ExtendLease(ctx, call.ExtendLease)
			reply.Response = item
		case *oncewardv1.BatchRequestItem_Lookup:
			item := &oncewardv1.BatchResponseItem_Lookup{}
			item.Lookup, err = s.Lookup(ctx, call.Lookup)
			reply.Response = item
		default:
			return nil, status.Error(codes.InvalidArgument, "an item without a request")
		}
		if err != nil {
			reply.Response = &oncewardv1.BatchResponseItem_Error{Error: itemError(err)}
		}
		response.Items = append(response.Items, reply)
	}
	return response, nil
}

// answer makes a call under the lock, or injects a fault.
func answer[Request, Response any](
	s *Service, call Call, request Request, make func(Request) (*Response, error),
) (*Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.faults, func(pending *fault) bool { return pending.call == call })
	if at < 0 {
		return make(request)
	}
	injected := s.faults[at]
	s.faults = slices.Delete(s.faults, at, at+1)
	if injected.reason != "" {
		return nil, refuse(injected.reason, "The test lets this "+string(call)+" fail.")
	}
	if _, err := make(request); err != nil {
		return nil, err
	}
	return nil, refuse(onceward.ErrDatabaseUnavailable, "The test lets the reply to this "+string(call)+" get lost.")
}

// notify wakes the calls that wait: a record was settled, or the clock has advanced.
func (s *Service) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}
