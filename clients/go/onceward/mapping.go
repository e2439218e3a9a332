package onceward

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

const reasonPrefix = "ERROR_REASON_"

// errorFromCall returns the error of an RPC, whether the service, a proxy or gRPC made it.
func errorFromCall(cause error) *Error {
	var known *Error
	if errors.As(cause, &known) {
		return known
	}
	answer := status.Convert(cause)
	found := &Error{Reason: ErrNoAnswer, Message: answer.Message(), Code: answer.Code(), cause: cause}
	for _, detail := range answer.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			if detail.GetDomain() == "onceward" {
				found.Reason, found.Metadata = Reason(detail.GetReason()), detail.GetMetadata()
			}
		case *errdetails.RetryInfo:
			found.RetryDelay, found.saysWhen = detail.GetRetryDelay().AsDuration(), true
		case *errdetails.RequestInfo:
			found.RequestID = detail.GetRequestId()
		case *errdetails.BadRequest:
			for _, each := range detail.GetFieldViolations() {
				found.Violations = append(found.Violations, Violation{each.GetField(), each.GetDescription()})
			}
		}
	}
	if found.Reason == ErrNoAnswer {
		// The details are not the service's.
		return &Error{Reason: ErrNoAnswer, Message: answer.Message(), Code: answer.Code(), cause: cause}
	}
	return found
}

// errorFromItem returns the error with which the item's call would have failed outside a batch.
func errorFromItem(item *oncewardv1.BatchItemError) *Error {
	reason, known := oncewardv1.ErrorReason_name[int32(item.GetReason())]
	if !known {
		reason = fmt.Sprintf("REASON_%d", item.GetReason())
	}
	found := &Error{
		Reason:    Reason(strings.TrimPrefix(reason, reasonPrefix)),
		Message:   item.GetMessage(),
		Code:      codes.Code(item.GetCode()),
		Metadata:  item.GetMetadata(),
		RequestID: item.GetRequestId(),
	}
	for _, each := range item.GetFieldViolations() {
		found.Violations = append(found.Violations, Violation{each.GetField(), each.GetDescription()})
	}
	if delay := item.GetRetryDelay(); delay != nil {
		found.RetryDelay, found.saysWhen = delay.AsDuration(), true
	}
	return found
}

// IsRetryable returns whether a retry with the same claim id or fencing token may succeed: the service said when to retry, or
// is unavailable, or the connection broke and the outcome is unknown.
func (e *Error) IsRetryable() bool { return e.saysWhen || e.isUnavailable() }

// isToBeRepeated returns whether a call that is safe to repeat is repeated: also if it is unclear why no answer came. gRPC makes
// these codes of a proxy's HTTP 500 and of a stream that is reset, and also of other failures.
func (e *Error) isToBeRepeated() bool {
	unclear := []codes.Code{codes.Unknown, codes.Internal, codes.ResourceExhausted}
	return e.IsRetryable() || (e.Reason == ErrNoAnswer && slices.Contains(unclear, e.Code))
}

// isToBeRepeatedHeld is isToBeRepeated for a claim that is held: the service was reached, so that what gRPC makes of HTTP 404,
// 403 and 401 is a proxy's, such as one without replicas.
func (e *Error) isToBeRepeatedHeld() bool {
	pages := []codes.Code{codes.Unimplemented, codes.PermissionDenied, codes.Unauthenticated}
	return e.isToBeRepeated() || (e.Reason == ErrNoAnswer && slices.Contains(pages, e.Code))
}

// IsAboutKeyTime returns whether a claim was refused because of its key's time: it is required and unknown, or in the future.
func (e *Error) IsAboutKeyTime() bool {
	return e.Reason == ErrInvalidRequest &&
		slices.ContainsFunc(e.Violations, func(each Violation) bool { return each.Field == "key_created_at" })
}

// isUnavailable returns whether the service is unavailable by its own answer, or the connection broke.
func (e *Error) isUnavailable() bool {
	switch e.Code {
	case codes.Unavailable, codes.DeadlineExceeded:
		return true
	case codes.Aborted, codes.Canceled:
		// A proxy that ends a connection answers with these.
		return e.Reason == ErrNoAnswer
	default:
		return false
	}
}

// isUnreachable returns whether nothing is known about the key because the service is unavailable. A contended key was
// reached, and is contended by other callers.
func (e *Error) isUnreachable() bool { return e.isUnavailable() && e.Reason != ErrRecordContended }

// mayHaveHappened returns whether a call that failed so may have had its effect, or may still have it: its answer was lost.
// Any other reason of the service's catalogue is a definite refusal.
func (e *Error) mayHaveHappened() bool {
	facts := e.Reason.Facts()
	return facts == nil || facts.GetMayHaveHappened()
}

// Class returns what an adapter does about an error under which the function did not run.
func (e *Error) Class() oncewardv1.ReasonClass {
	if e.isGone {
		return oncewardv1.ReasonClass_REASON_CLASS_GONE
	}
	class := e.Reason.Facts().GetReasonClass()
	switch class {
	case oncewardv1.ReasonClass_REASON_CLASS_UNSPECIFIED, oncewardv1.ReasonClass_REASON_CLASS_FIX:
		if e.IsRetryable() {
			return oncewardv1.ReasonClass_REASON_CLASS_RETRY
		}
		return oncewardv1.ReasonClass_REASON_CLASS_FIX
	default:
		return class
	}
}

// isAboutContent returns whether a whole batch may have failed because of the content of one item: the items are then sent one
// by one, so that only the invalid one fails.
func (e *Error) isAboutContent() bool {
	if e.IsRetryable() || (e.Reason != ErrNoAnswer && e.Reason != ErrInvalidRequest) {
		return false
	}
	switch e.Code {
	case codes.InvalidArgument, codes.Internal, codes.Unknown, codes.ResourceExhausted:
		return true
	default:
		return false
	}
}

// isClaimGone returns whether no further heartbeat can prolong the claim.
func (e *Error) isClaimGone() bool {
	return e.Reason == ErrClosed || e.Reason.Facts().GetClaimIsOver()
}
