package onceward

import (
	"fmt"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
)

// Error is any failure between the program and the service. An error of the guarded function is never wrapped in it.
//
// errors.Is compares its Reason; the message is for people. InProgressError, AmbiguousError, ResultUnavailableError and
// CompletionError wrap an Error and have more to say.
type Error struct {
	// Why the call was refused, or not answered.
	Reason Reason
	// A sentence for people, without the claim.
	Message string
	// The claim that the error is about; nil if it is about no single claim.
	Claim *ClaimRef
	// The gRPC status, if the error came over the wire; otherwise codes.OK.
	Code codes.Code
	// Machine-readable details, as errors.proto lists them for the reason.
	Metadata map[string]string
	// Every violation of an INVALID_REQUEST.
	Violations []Violation
	// How long to wait before a retry, if the service said so; otherwise 0.
	RetryDelay time.Duration
	// Names the refused call in the service's log; "" if the service did not answer.
	RequestID string

	saysWhen bool // The service said when to retry, perhaps at once.
	isGone   bool // The effect happened, and its value is not available.
	cause    error
}

// Error returns the message, with the claim. Characters that control a terminal are replaced by U+FFFD.
func (e *Error) Error() string {
	text := fmt.Sprintf("onceward: %s: %s", e.Reason, e.Message)
	if e.Claim != nil {
		text += fmt.Sprintf(" (%s)", e.Claim)
	}
	return printable(text)
}

// Is returns whether the target is the error's Reason.
func (e *Error) Is(target error) bool { return target == e.Reason }

// Unwrap returns the error of gRPC, the codec or the credential that is the cause; nil if there is none.
func (e *Error) Unwrap() error { return e.cause }

// Remedy returns what to do about the error; "" for a reason of a newer service.
func (e *Error) Remedy() string { return e.Reason.Remedy() }

// about returns a copy that names the claim. An error that names one is returned unchanged.
func (e *Error) about(claim ClaimRef) *Error {
	if e.Claim != nil {
		return e
	}
	named := *e
	named.Claim = &claim
	return &named
}

// Violation is one request field that is malformed or over a limit; Description names the limit.
type Violation struct {
	Field       string
	Description string
}

// ClaimRef names the claim that an error is about. FencingToken is 0 if no claim was granted.
type ClaimRef struct {
	Namespace    string
	Key          string
	FencingToken int64
}

// String returns the claim as messages name it.
func (c ClaimRef) String() string {
	text := "namespace " + c.Namespace + ", key " + strconv.Quote(c.Key)
	if c.FencingToken != 0 {
		text += ", fencing token " + strconv.FormatInt(c.FencingToken, 10)
	}
	return text
}

// Checkpoint is progress that an earlier attempt saved. Decode reads its state.
type Checkpoint struct {
	Name string
	// The JSON that Claim.SaveCheckpoint wrote, or other bytes of another client; empty for no state.
	State []byte
}

// Decode reads the state into a pointer, as json.Unmarshal does. Without a state, the value stays as it is.
func (c *Checkpoint) Decode(into any) error { return decodeJSON(c.State, into) }

// InProgressError says that another holder had the claim, and still had it after Operation.Wait. Nothing ran; a later retry,
// after RetryDelay, is safe.
type InProgressError struct {
	Err *Error
	// The holder's name, as it gave it.
	Owner          string
	Attempt        int
	LeaseExpiresAt time.Time
}

func (e *InProgressError) Error() string { return e.Err.Error() }

// Unwrap returns the *Error with the reason ErrInProgress.
func (e *InProgressError) Unwrap() error { return e.Err }

// AmbiguousError says that the last holder's lease expired, that it is unknown whether its effect happened, and that the
// namespace's policy is HOLD. Nothing ran. Let Operation.Resolve find out, or an administrator resolve the record.
type AmbiguousError struct {
	Err *Error
	// The last holder's name, as it gave it.
	Owner          string
	Attempt        int
	LeaseExpiredAt time.Time
	// The last checkpoint; nil if none was saved.
	Checkpoint *Checkpoint
	// The error of Operation.Resolve; nil without one.
	Cause error
}

func (e *AmbiguousError) Error() string { return e.Err.Error() }

// Unwrap returns the *Error with the reason ErrAmbiguous.
func (e *AmbiguousError) Unwrap() error { return e.Err }

// ResultUnavailableError says that the effect happened, once, but that its value is not available. Nothing ran now.
// ErrResultExpired: its retention has ended. ErrResultLost: it could not be stored. ErrResultNotJSON, ErrCodecFailed: this
// run's codec can't read it. ErrInternal: it is of a kind that this client does not know.
type ResultUnavailableError struct {
	Err *Error
}

func (e *ResultUnavailableError) Error() string { return e.Err.Error() }

// Unwrap returns the *Error with the reason.
func (e *ResultUnavailableError) Unwrap() error { return e.Err }

// Effect is the outcome of a function that ran to its end: a value, or the error that it returned.
type Effect struct {
	Value any
	Err   error
}

// CompletionError says that the function ran to its end, but that its outcome could not be stored unchanged.
//
// If Stored, the operation is stored as done without its value, so that it does not run again. Otherwise, with
// ErrClaimSuperseded another holder took over, and with any other reason the next delivery runs the function again (policy
// RECLAIM) or finds the record ambiguous (HOLD) once the lease has expired.
type CompletionError struct {
	Err *Error
	// What the function did.
	Effect Effect
	// Whether the operation is stored as done.
	Stored bool
}

func (e *CompletionError) Error() string { return e.Err.Error() }

// Unwrap returns the *Error that says why.
func (e *CompletionError) Unwrap() error { return e.Err }

func newCompletionError(effect Effect, why *Error, stored bool, claim ClaimRef) *CompletionError {
	named := *why
	named.Message = "The effect ran, but its outcome could not be stored: " + why.Message
	named.Claim = &claim
	named.RetryDelay, named.saysWhen = 0, false
	named.cause = why
	return &CompletionError{Err: &named, Effect: effect, Stored: stored}
}

// TerminalError says that the operation failed permanently. If the guarded function returns it, it is stored, and every
// delivery gets it, the first one too. Message, Name and Details are kept; the error that Cause wraps is not.
type TerminalError struct {
	Message string
	// A JSON value, or nil. A stored one is as json.Unmarshal reads it.
	Details any
	// The kind of failure, such as "CardDeclined"; "" is stored as no name.
	Name string
	// What failed, on the first delivery alone.
	Cause error
}

func (e *TerminalError) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *TerminalError) Unwrap() error { return e.Cause }

// OutcomeUnknownError says that it is unknown whether the guarded function had its effect. A function returns it, such as one whose
// provider timed out; it may be wrapped.
//
// The claim is not released: its lease expires, and then the namespace's policy decides. Under HOLD the operation becomes ambiguous,
// under RECLAIM it runs again.
type OutcomeUnknownError struct {
	// Default: the text of Cause.
	Message string
	// What failed, such as the error of the call to the provider.
	Cause error
}

func (e *OutcomeUnknownError) Error() string {
	return textOf(e.Message, e.Cause, "The outcome is unknown.")
}

// Unwrap returns the cause.
func (e *OutcomeUnknownError) Unwrap() error { return e.Cause }

// NoEffectError says that the guarded function certainly had no effect: its claim is released, and a retry runs at once, also if
// the function was interrupted or Operation.OnError is UnknownOnError. A function returns it; it may be wrapped.
type NoEffectError struct {
	// Default: the text of Cause.
	Message string
	// Why there was no effect, such as a refused connection.
	Cause error
}

func (e *NoEffectError) Error() string { return textOf(e.Message, e.Cause, "There was no effect.") }

// Unwrap returns the cause.
func (e *NoEffectError) Unwrap() error { return e.Cause }

func textOf(message string, cause error, otherwise string) string {
	switch {
	case message != "":
		return message
	case cause != nil:
		return cause.Error()
	default:
		return otherwise
	}
}

func invalidRequest(violations ...Violation) *Error {
	message := ""
	for i, violation := range violations {
		if i > 0 {
			message += "; "
		}
		message += violation.Field + " " + violation.Description
	}
	return &Error{Reason: ErrInvalidRequest, Message: message, Violations: violations}
}

func errClosed() *Error { return &Error{Reason: ErrClosed, Message: "The client is closed."} }
