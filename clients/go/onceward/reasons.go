package onceward

import (
	"regexp"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

// Reason says why a call was refused: a reason of the service's catalogue, which errors.proto explains, or one of the
// client's own. Reasons are errors, so that errors.Is(err, onceward.ErrFingerprintMismatch) asks for one. A reason of a newer
// service, which this client does not know, is passed on unchanged.
type Reason string

// Error returns the reason itself.
func (r Reason) Error() string { return string(r) }

// Remedy returns what a developer does about an error of this reason; "" for a reason of a newer service.
func (r Reason) Remedy() string {
	remedy, _ := r.option(oncewardv1.E_Remedy).(string)
	text := placeholder.ReplaceAllStringFunc(remedy, func(name string) string {
		return goName(strings.Trim(name, "{}"))
	})
	return link.ReplaceAllString(text, "$1")
}

// Facts returns what errors.proto says of the reason; nil for a reason of a newer service.
func (r Reason) Facts() *oncewardv1.ReasonFacts {
	facts, _ := r.option(oncewardv1.E_Reason).(*oncewardv1.ReasonFacts)
	return facts
}

// option returns an option of the reason in errors.proto; nil for a reason of a newer service.
func (r Reason) option(extension protoreflect.ExtensionType) any {
	value := oncewardv1.ErrorReason(0).Descriptor().Values().ByName(protoreflect.Name(reasonPrefix + string(r)))
	if value == nil {
		value = oncewardv1.ClientReason(0).Descriptor().Values().ByName(protoreflect.Name("CLIENT_REASON_" + string(r)))
	}
	if value == nil {
		return nil
	}
	return proto.GetExtension(value.Options(), extension)
}

var (
	placeholder = regexp.MustCompile(`\{\w+\}`)
	link        = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	initialisms = strings.NewReplacer("Api", "API", "Tls", "TLS")
)

// goName returns the Go name of an option or a field, such as RetryDelay for retry_delay_ms.
func goName(name string) string {
	words := strings.Split(strings.TrimSuffix(name, "_ms"), "_")
	for i, word := range words {
		words[i] = strings.ToUpper(word[:1]) + word[1:]
	}
	return initialisms.Replace(strings.Join(words, ""))
}

// Reasons of the service that callers of Run meet. errors.proto has all of them.
const (
	// A field is malformed or over a limit: see Violations. Nothing happened.
	ErrInvalidRequest Reason = "INVALID_REQUEST"
	// The key was used for a different request. Nothing happened; a retry does not help.
	ErrFingerprintMismatch Reason = "FINGERPRINT_MISMATCH"
	// Another holder has taken the claim over. Nothing happened.
	ErrClaimSuperseded Reason = "CLAIM_SUPERSEDED"
	// The claim was completed before with a different result, which is kept.
	ErrAlreadyCompleted Reason = "ALREADY_COMPLETED"
	// The claim was released before: claim again.
	ErrAlreadyReleased Reason = "ALREADY_RELEASED"
	// There is no such record: the key was never claimed, or its retention has ended.
	ErrRecordNotFound Reason = "RECORD_NOT_FOUND"
	// The result is larger than the policy allows.
	ErrResultTooLarge Reason = "RESULT_TOO_LARGE"
	// The API key is malformed, unknown, expired or revoked.
	ErrCredentialInvalid Reason = "CREDENTIAL_INVALID"
	// The API key's role may not make this call.
	ErrRoleDenied Reason = "ROLE_DENIED"
	// The API key is limited to other namespaces.
	ErrNamespaceDenied Reason = "NAMESPACE_DENIED"
	// The operator has suspended the tenant.
	ErrTenantSuspended Reason = "TENANT_SUSPENDED"
	// The service's database did not answer; a write may have happened. The client retries until Timeout.
	ErrDatabaseUnavailable Reason = "DATABASE_UNAVAILABLE"
	// The replica's queue was full. The client retries until Timeout.
	ErrOverloaded Reason = "OVERLOADED"
	// The record changed too often during the call. The client retries until Timeout.
	ErrRecordContended Reason = "RECORD_CONTENDED"
	// The replica is shutting down. The client retries, at another replica if there is one, until Timeout.
	ErrShuttingDown Reason = "SHUTTING_DOWN"
	// The call's deadline passed at the service; a write may have happened. The client retries until Timeout.
	ErrDeadlineExceeded Reason = "DEADLINE_EXCEEDED"
	// The caller cancelled the call; a write may have happened.
	ErrCancelled Reason = "CANCELLED"
	// A bug of the service; its log has the error under the request id.
	ErrInternal Reason = "INTERNAL"
	// The tenant is moving to another installation. The client retries until Timeout.
	ErrTenantMoving Reason = "TENANT_MOVING"
	// The key was created longer ago than the namespace accepts, and has no record. Nothing happened.
	ErrKeyTooOld Reason = "KEY_TOO_OLD"
)

// Reasons of the client.
const (
	// The network or a proxy answered, not Onceward: see the Code of the Error.
	ErrNoAnswer Reason = "NO_ANSWER"
	// The client is closed.
	ErrClosed Reason = "CLOSED"
	// The function Options.Token failed, with the error that Unwrap returns. The client retries until Timeout.
	ErrTokenUnavailable Reason = "TOKEN_UNAVAILABLE"
	// No heartbeat was answered before the lease expired: the cause of the function's context.
	ErrLeaseLost Reason = "LEASE_LOST"
	// Another holder has the claim: see InProgressError.
	ErrInProgress Reason = "IN_PROGRESS"
	// It is unknown whether an earlier attempt had its effect: see AmbiguousError.
	ErrAmbiguous Reason = "AMBIGUOUS"
	// The effect happened; the retention of its value has ended: see ResultUnavailableError.
	ErrResultExpired Reason = "RESULT_EXPIRED"
	// The effect happened; its value could not be stored: see ResultUnavailableError.
	ErrResultLost Reason = "RESULT_LOST"
	// The value has no JSON form, or the stored value is not JSON.
	ErrResultNotJSON Reason = "RESULT_NOT_JSON"
	// The codec returned the error that Unwrap returns.
	ErrCodecFailed Reason = "CODEC_FAILED"
)
