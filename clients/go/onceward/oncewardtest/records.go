package oncewardtest

import (
	"bytes"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/onceward/onceward/clients/go/onceward"
	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

type recordID struct{ namespace, key string }

// record is the record of one key, with the policy of its newest claim. Functions of a record need the service's lock.
type record struct {
	recordID
	token          int64
	attempt        int32
	claimID, owner string
	fingerprint    []byte
	firstClaimedAt time.Time
	claimedAt      time.Time
	leaseEnd       time.Time
	expiresAt      time.Time
	checkpoint     *oncewardv1.Checkpoint
	policy         Policy
	// At most one is set: how the claim ended.
	releasedAt    time.Time
	releaseReason string
	completedAt   time.Time
	result        *oncewardv1.Result
	resultEnd     time.Time
}

func (r *record) isReleased() bool  { return !r.releasedAt.IsZero() }
func (r *record) isCompleted() bool { return !r.completedAt.IsZero() }

// isAmbiguous returns whether an unfinished claim's lease has expired under HOLD.
func (r *record) isAmbiguous(now time.Time) bool { return r.policy.Hold && !r.leaseEnd.After(now) }

func (s *Service) policyOf(namespace string) Policy {
	policy, known := s.namespaces[namespace]
	if !known {
		policy = s.policy
	}
	orElse := func(value *time.Duration, otherwise time.Duration) {
		if *value == 0 {
			*value = otherwise
		}
	}
	orElse(&policy.KeyRetention, 72*time.Hour)
	orElse(&policy.ResultRetention, policy.KeyRetention)
	policy.ResultRetention = min(policy.ResultRetention, policy.KeyRetention)
	orElse(&policy.FailureRetention, policy.ResultRetention)
	policy.FailureRetention = min(policy.FailureRetention, policy.KeyRetention)
	orElse(&policy.MaxLease, 15*time.Minute)
	orElse(&policy.DefaultLease, 30*time.Second)
	policy.DefaultLease = min(policy.DefaultLease, policy.MaxLease)
	if policy.MaxResultBytes == 0 {
		policy.MaxResultBytes = 64 << 10
	}
	return policy
}

// find returns the record, if the key is known and its retention has not ended.
func (s *Service) find(id recordID) *record {
	found := s.records[id]
	if found == nil || !found.expiresAt.After(s.now) {
		return nil
	}
	return found
}

// own returns the record of the claim that a token names.
func (s *Service) own(id recordID, token int64) (*record, error) {
	found := s.find(id)
	switch {
	case found == nil:
		return nil, refuse(onceward.ErrRecordNotFound, "There is no such record: never claimed, or its retention has ended.")
	case found.token != token:
		return nil, refuse(onceward.ErrClaimSuperseded, "The fencing token does not name the key's newest claim.")
	default:
		return found, nil
	}
}

func (s *Service) claim(request *oncewardv1.ClaimRequest) (*oncewardv1.ClaimResponse, error) {
	id := recordID{request.GetNamespace(), request.GetKey()}
	met := s.find(id)
	if met != nil && len(met.fingerprint) > 0 && len(request.GetFingerprint()) > 0 &&
		!bytes.Equal(met.fingerprint, request.GetFingerprint()) {
		return nil, refuse(onceward.ErrFingerprintMismatch, "The key is bound to another request: its fingerprint differs.")
	}
	response := &oncewardv1.ClaimResponse{ServerTime: timestamppb.New(s.now)}
	if met == nil {
		if err := checkAge(request, s.policyOf(id.namespace), s.now); err != nil {
			return nil, err
		}
	}
	switch {
	case met == nil, met.isReleased():
		met = s.grant(request, id, met)
		response.Outcome = &oncewardv1.ClaimResponse_Claimed{Claimed: met.claimed(s.now)}
		s.counts.Granted++
	case met.isCompleted():
		result, expired := met.completion(s.now)
		response.Outcome = &oncewardv1.ClaimResponse_Completed{Completed: &oncewardv1.Completed{
			CompletedAt: timestamppb.New(met.completedAt), Result: result, ResultExpired: expired,
		}}
		s.counts.Replayed++
	case met.leaseEnd.After(s.now) && request.GetClaimId() != "" && request.GetClaimId() == met.claimID:
		response.Outcome = &oncewardv1.ClaimResponse_Claimed{Claimed: met.claimed(s.now)}
		s.counts.Recovered++
	case met.leaseEnd.After(s.now):
		response.Outcome = &oncewardv1.ClaimResponse_InProgress{InProgress: &oncewardv1.InProgress{
			Owner: met.owner, Attempt: met.attempt, LeaseExpiresAt: timestamppb.New(met.leaseEnd),
			RetryAfter: durationpb.New(max(10*time.Millisecond, min(time.Second, met.leaseEnd.Sub(s.now)))),
		}}
		s.counts.InProgress++
	case met.isAmbiguous(s.now) && !request.GetAcceptAmbiguous():
		response.Outcome = &oncewardv1.ClaimResponse_Ambiguous{Ambiguous: &oncewardv1.Ambiguous{
			Owner: met.owner, Attempt: met.attempt, LeaseExpiredAt: timestamppb.New(met.leaseEnd), Checkpoint: met.checkpoint,
		}}
		s.counts.Ambiguous++
	default:
		met = s.grant(request, id, met)
		response.Outcome = &oncewardv1.ClaimResponse_Claimed{Claimed: met.claimed(s.now)}
		s.counts.Granted++
	}
	response.ExpiresAt = timestamppb.New(met.expiresAt)
	return response, nil
}

// grant keeps a claim; previous is the record that it takes over, as a further attempt.
func (s *Service) grant(request *oncewardv1.ClaimRequest, id recordID, previous *record) *record {
	policy := s.policyOf(id.namespace)
	lease := policy.DefaultLease
	if request.GetLease() != nil {
		lease = request.GetLease().AsDuration()
	}
	if request.GetRetention() != nil && !policy.refusesLateKeys() {
		policy.KeyRetention = request.GetRetention().AsDuration()
	}
	policy = policy.stamped()
	s.lastToken++
	granted := &record{
		recordID: id, token: s.lastToken, attempt: 1, claimID: request.GetClaimId(), owner: request.GetOwner(),
		fingerprint: request.GetFingerprint(), firstClaimedAt: s.now, claimedAt: s.now, leaseEnd: s.now.Add(lease), policy: policy,
	}
	if previous != nil {
		granted.attempt = previous.attempt + 1
		granted.firstClaimedAt, granted.checkpoint = previous.firstClaimedAt, previous.checkpoint
		if len(previous.fingerprint) > 0 {
			granted.fingerprint = previous.fingerprint
		}
	}
	granted.expiresAt = later(s.now.Add(policy.KeyRetention), granted.leaseEnd)
	s.records[id] = granted
	return granted
}

func (s *Service) complete(request *oncewardv1.CompleteRequest) (*oncewardv1.CompleteResponse, error) {
	held, err := s.own(recordID{request.GetNamespace(), request.GetKey()}, request.GetFencingToken())
	if err != nil {
		return nil, err
	}
	if held.isReleased() {
		return nil, alreadyReleased()
	}
	again := held.isCompleted()
	if again && !proto.Equal(held.result, request.GetResult()) {
		return nil, refuse(onceward.ErrAlreadyCompleted, "The claim was completed before, with another result.")
	}
	if !again {
		retention := held.policy.KeyRetention
		if request.GetRetention() != nil && !held.policy.refusesLateKeys() {
			retention = request.GetRetention().AsDuration()
		}
		ofKind := held.policy.ResultRetention
		if request.GetResult().GetKind() == oncewardv1.Result_KIND_FAILURE {
			ofKind = held.policy.FailureRetention
		}
		held.completedAt, held.result = s.now, request.GetResult()
		held.expiresAt, held.resultEnd = s.now.Add(retention), s.now.Add(min(retention, ofKind))
		s.notify()
	}
	return &oncewardv1.CompleteResponse{
		CompletedAt: timestamppb.New(held.completedAt), ExpiresAt: timestamppb.New(held.expiresAt), AlreadyCompleted: again,
	}, nil
}

func (s *Service) release(request *oncewardv1.ReleaseRequest) (*oncewardv1.ReleaseResponse, error) {
	held, err := s.own(recordID{request.GetNamespace(), request.GetKey()}, request.GetFencingToken())
	if err != nil {
		return nil, err
	}
	if held.isCompleted() {
		return nil, alreadyCompleted()
	}
	if !held.isReleased() {
		held.releasedAt, held.releaseReason = s.now, request.GetReason()
		s.notify()
	}
	return &oncewardv1.ReleaseResponse{ExpiresAt: timestamppb.New(held.expiresAt)}, nil
}

func (s *Service) extendLease(request *oncewardv1.ExtendLeaseRequest) (*oncewardv1.ExtendLeaseResponse, error) {
	held, err := s.own(recordID{request.GetNamespace(), request.GetKey()}, request.GetFencingToken())
	switch {
	case err != nil:
		return nil, err
	case held.isCompleted():
		return nil, alreadyCompleted()
	case held.isReleased():
		return nil, alreadyReleased()
	}
	lease := held.policy.DefaultLease
	if request.GetLease() != nil {
		lease = request.GetLease().AsDuration()
	}
	held.leaseEnd = later(held.leaseEnd, s.now.Add(lease))
	held.expiresAt = later(held.expiresAt, held.leaseEnd)
	if request.GetCheckpoint() != nil {
		held.checkpoint = request.GetCheckpoint()
	}
	return &oncewardv1.ExtendLeaseResponse{
		LeaseExpiresAt: timestamppb.New(held.leaseEnd), LeaseRemaining: durationpb.New(held.leaseEnd.Sub(s.now)),
		ExpiresAt: timestamppb.New(held.expiresAt),
	}, nil
}

func (r *record) claimed(now time.Time) *oncewardv1.Claimed {
	return &oncewardv1.Claimed{
		FencingToken: r.token, Attempt: r.attempt, FirstClaimedAt: timestamppb.New(r.firstClaimedAt),
		LeaseExpiresAt: timestamppb.New(r.leaseEnd), LeaseRemaining: durationpb.New(r.leaseEnd.Sub(now)), Checkpoint: r.checkpoint,
	}
}

func (r *record) completion(now time.Time) (result *oncewardv1.Result, expired bool) {
	if !r.resultEnd.After(now) {
		return nil, true
	}
	return r.result, false
}

// message returns the record as Lookup returns it.
func (r *record) message(now time.Time) *oncewardv1.Record {
	message := &oncewardv1.Record{
		Namespace: r.namespace, Key: r.key, FencingToken: r.token, Attempt: r.attempt, Owner: r.owner,
		Fingerprint: r.fingerprint, Checkpoint: r.checkpoint, State: oncewardv1.Record_STATE_IN_PROGRESS,
		FirstClaimedAt: timestamppb.New(r.firstClaimedAt), ClaimedAt: timestamppb.New(r.claimedAt),
		LeaseExpiresAt: timestamppb.New(r.leaseEnd), ExpiresAt: timestamppb.New(r.expiresAt),
	}
	switch {
	case r.isCompleted():
		message.State = oncewardv1.Record_STATE_COMPLETED
		message.CompletedAt, message.ResultExpiresAt = timestamppb.New(r.completedAt), timestamppb.New(r.resultEnd)
		message.Result, message.ResultExpired = r.completion(now)
	case r.isReleased():
		message.State = oncewardv1.Record_STATE_RELEASED
		message.ReleasedAt, message.ReleaseReason = timestamppb.New(r.releasedAt), r.releaseReason
	case r.isAmbiguous(now):
		message.State = oncewardv1.Record_STATE_AMBIGUOUS
	}
	return message
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func alreadyCompleted() error {
	return refuse(onceward.ErrAlreadyCompleted, "The claim was completed before.")
}

func alreadyReleased() error {
	return refuse(onceward.ErrAlreadyReleased, "The claim was released before.")
}
