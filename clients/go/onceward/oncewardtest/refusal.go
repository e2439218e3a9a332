package oncewardtest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/onceward/onceward/clients/go/onceward"
	"github.com/onceward/onceward/clients/go/onceward/internal/limits"
	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

const (
	// Short, because tests need not spare the service.
	retryAfter = time.Millisecond
	// No client sends a retention: the policy alone decides.
	noRetention = "is not in the service in memory: set its policy"
)

// refusal is the error of a call, in the form in which a batch has it.
type refusal struct{ *oncewardv1.BatchItemError }

func refuse(reason onceward.Reason, message string) refusal {
	code := codes.Unknown
	if facts := reason.Facts(); facts == nil || code.UnmarshalJSON([]byte(strconv.Quote(facts.GetCode()))) != nil {
		code = codes.Unknown
	}
	known := oncewardv1.ErrorReason_value["ERROR_REASON_"+string(reason)]
	made := &oncewardv1.BatchItemError{Code: int32(code), Reason: oncewardv1.ErrorReason(known), Message: message}
	if code == codes.Unavailable {
		made.RetryDelay = durationpb.New(retryAfter)
	}
	return refusal{made}
}

func (r refusal) Error() string { return r.GetMessage() }

// GRPCStatus returns the status of a call of its own, with the details that the service sends.
func (r refusal) GRPCStatus() *status.Status {
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{
		Reason: strings.TrimPrefix(r.GetReason().String(), "ERROR_REASON_"), Domain: "onceward", Metadata: r.GetMetadata(),
	}}
	if len(r.GetFieldViolations()) > 0 {
		invalid := &errdetails.BadRequest{}
		for _, each := range r.GetFieldViolations() {
			invalid.FieldViolations = append(invalid.FieldViolations,
				&errdetails.BadRequest_FieldViolation{Field: each.GetField(), Description: each.GetDescription()})
		}
		details = append(details, invalid)
	}
	if r.GetRetryDelay() != nil {
		details = append(details, &errdetails.RetryInfo{RetryDelay: r.GetRetryDelay()})
	}
	made, err := status.New(codes.Code(r.GetCode()), r.GetMessage()).WithDetails(details...)
	if err != nil {
		return status.New(codes.Internal, err.Error())
	}
	return made
}

// itemError returns an error as the reply to a batch's item.
func itemError(err error) *oncewardv1.BatchItemError {
	var refused refusal
	if errors.As(err, &refused) {
		return refused.BatchItemError
	}
	return &oncewardv1.BatchItemError{Code: int32(codes.Internal), Message: err.Error()}
}

// violations are the fields of one request that its policy does not allow. The client checks everything else before it sends a
// request.
type violations []*oncewardv1.FieldViolation

func (v *violations) addIf(isInvalid bool, field, description string) {
	if isInvalid {
		*v = append(*v, &oncewardv1.FieldViolation{Field: field, Description: description})
	}
}

func (v *violations) lease(lease *durationpb.Duration, policy Policy) {
	v.addIf(lease.AsDuration() > policy.MaxLease, "lease", fmt.Sprintf("must be at most %s", policy.MaxLease))
}

func (v *violations) refusal() error {
	if len(*v) == 0 {
		return nil
	}
	texts := make([]string, len(*v))
	for i, each := range *v {
		texts[i] = each.GetField() + " " + each.GetDescription()
	}
	refused := refuse(onceward.ErrInvalidRequest, strings.Join(texts, "; "))
	refused.FieldViolations = *v
	return refused
}

// checkClaim refuses a claim that its policy does not allow. Returns when its key was made, if the policy asks and the time is known.
func checkClaim(request *oncewardv1.ClaimRequest, policy Policy, now time.Time) (made time.Time, hasTime bool, err error) {
	given := request.GetKeyCreatedAt()
	switch {
	case !policy.refusesLateKeys():
	case given != nil:
		made, hasTime = given.AsTime(), true
	default:
		made, hasTime = onceward.KeyTime(request.GetKey())
	}
	isAhead := hasTime && made.After(now.Add(limits.MaxKeyAhead))
	ahead := fmt.Sprintf("must not be created more than %s after the server's time", limits.MaxKeyAhead)
	var found violations
	found.addIf(policy.RequireFingerprint && len(request.GetFingerprint()) == 0, "fingerprint", "is required by the namespace's policy")
	found.lease(request.GetLease(), policy)
	found.addIf(request.GetCompletion() != nil && request.GetLease() != nil, "lease",
		"must be unset with `completion`, which needs no lease")
	found.addIf(request.GetRetention() != nil, "retention", noRetention)
	found.addIf(policy.LateKeys == RequireKeyTime && !hasTime, "key_created_at",
		"is required by the namespace's policy, as the key contains no time")
	found.addIf(isAhead && given != nil, "key_created_at", ahead)
	found.addIf(isAhead && given == nil, "key", ahead)
	return made, hasTime, found.refusal()
}

// refuseOld refuses a key that has no record and was made too long ago.
func refuseOld(made, until time.Time) error {
	refused := refuse(onceward.ErrKeyTooOld,
		"The key is older than its retention and has no record: its operation may have happened and been forgotten. "+
			"Find out whether it happened; if it did not, repeat it under a new key.")
	const isoMillis = "2006-01-02T15:04:05.000Z"
	refused.Metadata = map[string]string{
		"key_created_at": made.UTC().Format(isoMillis), "accepted_until": until.UTC().Format(isoMillis),
	}
	return refused
}
