package oncewardgrpc

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/onceward/onceward/clients/go/onceward"
	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

const (
	typePrefix = "type.googleapis.com/"
	// The domain of the ErrorInfo of every refusal, as of the service's errors.
	domain = "onceward"
)

// failureDetails are the details of a stored failure, as the guards of the other languages store them.
type failureDetails struct {
	Code    *codes.Code     `json:"rpcCode"`
	Details []failureDetail `json:"rpcDetails"`
}

type failureDetail struct {
	Type  string `json:"type"`
	Value string `json:"value"` // Base64.
}

// stored returns the error that a run stores for a method's error, or one that releases or leaves the claim.
func (g *guard) stored(err error) error {
	var noEffect *onceward.NoEffectError
	var unknown *onceward.OutcomeUnknownError
	hasUnknown := errors.As(err, &unknown)
	if errors.As(err, &noEffect) && (!hasUnknown || errors.Is(noEffect, unknown)) {
		return noEffect
	}
	if hasUnknown {
		return unknown
	}
	failed, hasCode := status.FromError(err)
	var run *onceward.Error
	switch {
	case hasCode && !isRefusal(failed) && g.Stores(failed.Code()):
	case hasCode && !isRefusal(failed) && isCut(failed) && !errors.As(err, &run):
		return &onceward.OutcomeUnknownError{Cause: err}
	default:
		var terminal *onceward.TerminalError
		if errors.As(err, &terminal) {
			// Such as that of a nested run: it is not the outcome of this operation.
			return errors.New(err.Error())
		}
		return err
	}
	code := failed.Code()
	details := failureDetails{Code: &code, Details: []failureDetail{}}
	for _, each := range failed.Proto().GetDetails() {
		details.Details = append(details.Details, failureDetail{
			strings.TrimPrefix(each.GetTypeUrl(), typePrefix), base64.StdEncoding.EncodeToString(each.GetValue()),
		})
	}
	return &onceward.TerminalError{Message: failed.Message(), Details: details, Cause: err}
}

// nested is a method's error of a run within it, whose code and details would look like a refusal of the call.
type nested struct{ error }

func (n nested) GRPCStatus() *status.Status { return status.New(codes.Unknown, n.Error()) }
func (n nested) Unwrap() error              { return n.error }

// ownError returns a method's error as the caller gets it.
func ownError(err error) error {
	var failed *onceward.Error
	if errors.As(err, &failed) {
		return nested{err}
	}
	return err
}

// isCut returns whether a platform or a connection ends calls with this failure, while their method may still run. A server that sheds
// load says when to come back.
func isCut(failed *status.Status) bool {
	switch failed.Code() {
	case codes.Canceled, codes.Unknown, codes.DeadlineExceeded:
		return true
	case codes.Unavailable:
		isRetryInfo := func(detail any) bool { _, is := detail.(*errdetails.RetryInfo); return is }
		return !slices.ContainsFunc(failed.Details(), isRetryInfo)
	default:
		return false
	}
}

// isRefusal returns whether a failure is a guard's or the service's, such as that of a method that calls another guarded method: it
// says nothing about the outcome of the outer operation.
func isRefusal(failed *status.Status) bool {
	for _, each := range failed.Details() {
		if info, isInfo := each.(*errdetails.ErrorInfo); isInfo && info.GetDomain() == domain {
			return true
		}
	}
	return false
}

// storedFailure returns the failure of its stored form; nil if the error has no such form.
func storedFailure(terminal *onceward.TerminalError) error {
	text, err := json.Marshal(terminal.Details)
	if err != nil {
		return nil
	}
	var stored failureDetails
	if json.Unmarshal(text, &stored) != nil || stored.Code == nil {
		return nil
	}
	failed := &rpcstatus.Status{Code: int32(*stored.Code), Message: terminal.Message}
	for _, each := range stored.Details {
		value, err := base64.StdEncoding.DecodeString(each.Value)
		if err != nil {
			return nil
		}
		failed.Details = append(failed.Details, &anypb.Any{TypeUrl: typePrefix + each.Type, Value: value})
	}
	return status.ErrorProto(failed)
}

// refusalOf returns the failure for an error under which the method was not called; nil for one that does not concern the caller.
func refusalOf(err error) error {
	if err == context.DeadlineExceeded {
		return status.FromContextError(err).Err()
	}
	var failed *onceward.Error
	if !errors.As(err, &failed) {
		return nil
	}
	reason := failed.Reason
	if failed.IsAboutKeyTime() {
		message := "The idempotency key must contain the time at which it was made, as a UUID of version 7 does."
		return refusal(codes.InvalidArgument, reason, message)
	}
	switch failed.Class() {
	case oncewardv1.ReasonClass_REASON_CLASS_GONE:
		return refusal(codes.AlreadyExists, reason, "The call was carried out; its response is gone.")
	case oncewardv1.ReasonClass_REASON_CLASS_WAIT:
		return refusal(codes.Aborted, reason, "A call with this idempotency key is in progress.", failed.RetryDelay)
	case oncewardv1.ReasonClass_REASON_CLASS_ASK:
		return ambiguous(reason)
	case oncewardv1.ReasonClass_REASON_CLASS_REUSED:
		return refusal(codes.FailedPrecondition, reason, "The idempotency key was used for another request.")
	case oncewardv1.ReasonClass_REASON_CLASS_TOO_OLD:
		return refusal(codes.FailedPrecondition, reason, "The call is too old to be repeated: find out whether it was carried out.")
	case oncewardv1.ReasonClass_REASON_CLASS_RETRY:
		message := "The idempotency key can't be checked now: this call was not carried out; an earlier one may have been."
		return refusal(codes.Unavailable, reason, message, failed.RetryDelay)
	default:
		return nil
	}
}

func ambiguous(reason onceward.Reason) error {
	return refusal(codes.FailedPrecondition, reason, "It is not known whether an earlier call had its effect.")
}

// refusal returns an error whose details tell machines the reason, as the service's do.
func refusal(code codes.Code, reason onceward.Reason, message string, retryAfter ...time.Duration) error {
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: string(reason), Domain: domain}}
	for _, delay := range retryAfter {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(delay)})
	}
	refused := status.New(code, message)
	if detailed, err := refused.WithDetails(details...); err == nil {
		refused = detailed
	}
	return refused.Err()
}

func refused(field, description string) error {
	return &onceward.Error{
		Reason: onceward.ErrInvalidRequest, Message: field + " " + description,
		Violations: []onceward.Violation{{Field: field, Description: description}},
	}
}
