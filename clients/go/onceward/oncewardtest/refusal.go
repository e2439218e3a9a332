package oncewardtest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/onceward/onceward/clients/go/onceward"
	"github.com/onceward/onceward/clients/go/onceward/internal/limits"
	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

// Short, because tests need not spare the service.
const retryAfter = time.Millisecond

type violation = errdetails.BadRequest_FieldViolation

// refuse returns a refusal as the service sends it.
func refuse(reason onceward.Reason, message string, violations ...*violation) error {
	return refuseWith(reason, message, nil, violations...)
}

func refuseWith(
	reason onceward.Reason, message string, metadata map[string]string, violations ...*violation,
) error {
	code := codes.Unknown
	if facts := reason.Facts(); facts != nil {
		if err := code.UnmarshalJSON([]byte(strconv.Quote(facts.GetCode()))); err != nil {
			return err
		}
	}
	refusal, err := status.New(code, message).WithDetails(&errdetails.ErrorInfo{
		Reason: string(reason), Domain: "onceward", Metadata: metadata,
	})
	if err == nil && len(violations) > 0 {
		refusal, err = refusal.WithDetails(&errdetails.BadRequest{FieldViolations: violations})
	}
	if err == nil && code == codes.Unavailable {
		refusal, err = refusal.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(retryAfter)})
	}
	if err != nil {
		return err
	}
	return refusal.Err()
}

// itemError returns a refusal as the reply to a batch's item.
func itemError(err error) *oncewardv1.BatchItemError {
	refusal := status.Convert(err)
	made := &oncewardv1.BatchItemError{Code: int32(refusal.Code()), Message: refusal.Message()}
	for _, detail := range refusal.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			made.Metadata = detail.GetMetadata()
			made.Reason = oncewardv1.ErrorReason(oncewardv1.ErrorReason_value["ERROR_REASON_"+detail.GetReason()])
		case *errdetails.RetryInfo:
			made.RetryDelay = detail.GetRetryDelay()
		case *errdetails.BadRequest:
			for _, each := range detail.GetFieldViolations() {
				made.FieldViolations = append(made.FieldViolations,
					&oncewardv1.FieldViolation{Field: each.GetField(), Description: each.GetDescription()})
			}
		}
	}
	return made
}

// violations are those of one request.
type violations []*violation

func (v *violations) add(field, description string) {
	*v = append(*v, &violation{Field: field, Description: description})
}

func (v *violations) text(field, value string, minBytes, maxBytes int) {
	switch {
	case len(value) < minBytes || len(value) > maxBytes:
		v.add(field, fmt.Sprintf("must be %d-%d bytes of UTF-8, is %d", minBytes, maxBytes, len(value)))
	case !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl):
		v.add(field, "must not contain control characters")
	}
}

func (v *violations) id(namespace, key string) {
	if !limits.NamespacePattern.MatchString(namespace) {
		v.add("namespace", limits.NamespaceRule)
	}
	v.text("key", key, 1, limits.MaxKeyBytes)
}

func (v *violations) duration(field string, value *durationpb.Duration, least, most time.Duration) {
	if value != nil && (value.AsDuration() < least || value.AsDuration() > most) {
		v.add(field, fmt.Sprintf("must be %s to %s", least, most))
	}
}

func (v *violations) held(namespace, key string, token int64) {
	v.id(namespace, key)
	if token <= 0 {
		v.add("fencing_token", "must be a token that Claim returned")
	}
}

func (v *violations) refusal() error {
	if len(*v) == 0 {
		return nil
	}
	texts := make([]string, len(*v))
	for i, each := range *v {
		texts[i] = each.GetField() + " " + each.GetDescription()
	}
	return refuse(onceward.ErrInvalidRequest, strings.Join(texts, "; "), *v...)
}

func checkClaim(request *oncewardv1.ClaimRequest, policy Policy, now time.Time) error {
	var found violations
	found.id(request.GetNamespace(), request.GetKey())
	if bytes := len(request.GetFingerprint()); bytes == 0 && policy.RequireFingerprint {
		found.add("fingerprint", "is required by the namespace's policy")
	} else if bytes != 0 && bytes != limits.FingerprintBytes {
		found.add("fingerprint", fmt.Sprintf("must be 0 or %d bytes, is %d", limits.FingerprintBytes, bytes))
	}
	found.text("claim_id", request.GetClaimId(), 0, limits.MaxClaimIDBytes)
	found.text("owner", request.GetOwner(), 0, limits.MaxOwnerBytes)
	found.duration("lease", request.GetLease(), limits.MinLease, policy.MaxLease)
	found.duration("retention", request.GetRetention(), limits.MinRetention, policy.KeyRetention)
	found.keyTime(request, policy, now)
	found.duration("wait", request.GetWait(), 0, limits.MaxWait)
	return found.refusal()
}

func checkComplete(request *oncewardv1.CompleteRequest, policy Policy) error {
	var found violations
	found.held(request.GetNamespace(), request.GetKey(), request.GetFencingToken())
	result := request.GetResult()
	if kind := result.GetKind(); kind != oncewardv1.Result_KIND_SUCCESS && kind != oncewardv1.Result_KIND_FAILURE {
		found.add("result.kind", "must be KIND_SUCCESS or KIND_FAILURE")
	}
	found.text("result.content_type", result.GetContentType(), 0, limits.MaxContentTypeBytes)
	found.duration("retention", request.GetRetention(), limits.MinRetention, policy.KeyRetention)
	if err := found.refusal(); err != nil {
		return err
	}
	size := len(result.GetPayload())
	if len(result.GetMetadata()) > 0 {
		metadata, err := json.Marshal(result.GetMetadata())
		if err != nil {
			return err
		}
		size += len(metadata)
	}
	if size > policy.MaxResultBytes {
		message := fmt.Sprintf("The result has %d bytes with its metadata; the policy allows %d.", size, policy.MaxResultBytes)
		return refuse(onceward.ErrResultTooLarge, message)
	}
	return nil
}

func checkRelease(request *oncewardv1.ReleaseRequest) error {
	var found violations
	found.held(request.GetNamespace(), request.GetKey(), request.GetFencingToken())
	if bytes := len(request.GetReason()); bytes > limits.MaxReleaseReasonBytes {
		found.add("reason", fmt.Sprintf("must be at most %d bytes, is %d", limits.MaxReleaseReasonBytes, bytes))
	}
	return found.refusal()
}

func checkExtendLease(request *oncewardv1.ExtendLeaseRequest, policy Policy) error {
	var found violations
	found.held(request.GetNamespace(), request.GetKey(), request.GetFencingToken())
	found.duration("lease", request.GetLease(), limits.MinLease, policy.MaxLease)
	if checkpoint := request.GetCheckpoint(); checkpoint != nil {
		found.text("checkpoint.name", checkpoint.GetName(), 1, limits.MaxCheckpointNameBytes)
		if bytes := len(checkpoint.GetState()); bytes > limits.MaxCheckpointStateBytes {
			found.add("checkpoint.state", fmt.Sprintf("must be at most %d bytes, is %d", limits.MaxCheckpointStateBytes, bytes))
		}
	}
	return found.refusal()
}
