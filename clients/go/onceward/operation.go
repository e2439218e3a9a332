package onceward

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/onceward/onceward/clients/go/onceward/internal/limits"
	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

// Operation identifies an operation, and says how to run it. Namespace and Key are required; other fields have defaults.
type Operation struct {
	// The group of operations that share a policy, such as "charges": [a-z0-9]([a-z0-9._-]{0,62}).
	Namespace string
	// The operation's id, 1-255 bytes of UTF-8 without control characters. Made where the operation is created, and the same on
	// every delivery: never the id of a job or an attempt, nor a time.
	Key string
	// The request that the key stands for, as the function Fingerprint takes it: another one under the key is refused with
	// ErrFingerprintMismatch. Default: none, and any request with the key gets the stored value.
	Fingerprint any
	// When the key was made: the same on every delivery. Where the namespace's policy says so (late_keys), a key that is older
	// than its retention is refused. Default: the time in the key, if the whole key is a UUID of version 1, 6
	// or 7, as NewKey makes them, or a ULID.
	KeyCreatedAt time.Time
	// The id of this attempt, at most 128 bytes: an attempt with the id of the claim that holds the key, or that Seen completed it
	// with, gets the same answer again. Two attempts that may happen at once must differ. Default: a new one.
	ClaimID string
	// Completes the key in the call that claims it, before the function runs. That saves a call; but a function that fails, or whose
	// process dies, does not run again, its value is not stored, and duplicates get the zero value. There is no lease, token or
	// checkpoint; Resolve and ClaimID are refused. Default: the value is stored, and a function that failed runs again.
	AtMostOnce bool
	// Stores of a success only that it happened, and not its value, such as a secret that is shown once. A duplicate fails with a
	// ResultUnavailableError (ErrResultLost).
	StoresMark bool
	// How long the claim outlives a process that dies, 1 s to 24 h. While the function runs, heartbeats prolong the lease.
	// Default: the namespace's policy.
	Lease time.Duration
	// While another holder runs the operation: wait, or fail at once with an InProgressError. Default: WaitInProgress.
	OnInProgress OnInProgress
	// How long to wait for another holder before an InProgressError. Default: 30 s, or the client's.
	Wait time.Duration
	// How long to retry calls that the service does not answer. Default: 15 s, or the client's.
	Timeout time.Duration
	// The name of the holder, shown to other callers, at most 128 bytes. Default: host and process, or the client's.
	Owner string
	// If the service is unreachable for Timeout: fail, so that nothing runs, or run the function without a claim. Default:
	// FailUnavailable.
	OnUnavailable OnUnavailable
	// Whether to run although it is unknown if an earlier attempt had its effect: the caller has found out, or accepts a
	// repetition.
	AcceptAmbiguous bool
	// Finds out what became of the effect of an earlier attempt whose lease ended without an outcome, for example by asking the
	// provider for the claim's DeriveKey. Called under the claim, before the function, whether the namespace's policy is HOLD or
	// RECLAIM. Unless it is known what happened, also after an error or a panic, the record is given back as it was; with ClaimID, it
	// is left to its lease and the policy. Not called with AcceptAmbiguous. Default: none.
	Resolve func(ctx context.Context, claim *Claim) (Resolution, error)
	// Whether the claim's Begin marks when the effect begins, so that a crash, an error or a panic before that is not ambiguous: the
	// next delivery runs, regardless of policy and OnError, unless the error is terminal. The function calls Begin right before its
	// effect; with Resolve, the run does so before the function. It costs a call. Default: false.
	MarksBegin bool
	// Returns whether an error of the function is permanent, so that it is stored as a TerminalError with its message, and every
	// delivery gets it. Not called for a TerminalError, an OutcomeUnknownError or a NoEffectError. Default: no error is, or the
	// client's.
	IsTerminal func(error) bool
	// What any other error of the function means for its effect. Default: ReleaseOnError, or the client's.
	OnError OnError
	// From this attempt on, an error that would release the claim is stored as a TerminalError: no other attempt follows. An attempt
	// is a granted claim of the key, also of a process that then died. Default: 0, no attempt is the last.
	LastAttempt int
	// Returns the text that is stored as the reason of a release, in plain form: no secrets, no personal data. Default: the type
	// of the error, without its message, or the client's.
	DescribeError func(error) string
	// Stores the function's value, and restores it. Default: JSONCodec.
	Codec Codec
}

// OnInProgress says what a run does while another holder runs the operation.
type OnInProgress int

const (
	// WaitInProgress waits for Operation.Wait.
	WaitInProgress OnInProgress = iota
	// FailInProgress fails at once with an InProgressError.
	FailInProgress
)

// OnUnavailable says what a run does if the service is unreachable.
type OnUnavailable int

const (
	// FailUnavailable fails, and nothing runs.
	FailUnavailable OnUnavailable = iota
	// ProceedUnavailable runs the function without a claim, and logs a warning: for effects that are better repeated than
	// missed. Any answer of the service is final: a refusal, a quota, another holder's claim.
	ProceedUnavailable
)

// OnError says what an error of the function means that says nothing about its effect, and is not an interruption.
type OnError int

const (
	// ReleaseOnError releases the claim: the error means that there was no effect.
	ReleaseOnError OnError = iota
	// UnknownOnError leaves the claim to its lease and the namespace's policy, as after an OutcomeUnknownError. It is for effects
	// that must not be repeated, such as payments: a NoEffectError alone releases the claim.
	UnknownOnError
)

const (
	// Longer than most operations last.
	defaultWait = 30 * time.Second
	// Long enough for a replica to be replaced, short enough for a caller who waits.
	defaultTimeout = 15 * time.Second
)

// ref returns how errors name a run that was granted no claim.
func (o *Operation) ref() ClaimRef { return ClaimRef{Namespace: o.Namespace, Key: o.Key} }

// withDefaults returns the operation with every field set. Fails with every violation.
func (o Operation) withDefaults(options *Options) (Operation, *Error) {
	var violations []Violation
	if !limits.NamespacePattern.MatchString(o.Namespace) {
		violations = append(violations, Violation{"Namespace", limits.NamespaceRule})
	}
	if o.Lease != 0 && (o.Lease < limits.MinLease || o.Lease > limits.MaxLease) {
		violations = append(violations, Violation{"Lease", fmt.Sprintf("must be %s to %s", limits.MinLease, limits.MaxLease)})
	}
	if year := o.KeyCreatedAt.UTC().Year(); year < 1 || year > 9999 {
		violations = append(violations, Violation{"KeyCreatedAt", "must be in the years 1-9999"})
	}
	if o.LastAttempt < 0 {
		violations = append(violations, Violation{"LastAttempt", "must not be negative"})
	}
	if o.AtMostOnce && o.Resolve != nil {
		violations = append(violations, Violation{"Resolve", "does not combine with AtMostOnce"})
	}
	if o.AtMostOnce && o.ClaimID != "" { // Another attempt with the id would get the same answer, and run again.
		violations = append(violations, Violation{"ClaimID", "does not combine with AtMostOnce"})
	}
	if o.OnInProgress != WaitInProgress && o.OnInProgress != FailInProgress {
		violations = append(violations, Violation{"OnInProgress", "must be WaitInProgress or FailInProgress"})
	}
	if o.OnUnavailable != FailUnavailable && o.OnUnavailable != ProceedUnavailable {
		violations = append(violations, Violation{"OnUnavailable", "must be FailUnavailable or ProceedUnavailable"})
	}
	violations = append(violations, sharedViolations(o.Wait, o.Timeout, o.Owner, o.OnError)...)
	violations = append(violations, textViolations("Key", o.Key, 1, limits.MaxKeyBytes)...)
	violations = append(violations, textViolations("ClaimID", o.ClaimID, 0, limits.MaxClaimIDBytes)...)
	if len(violations) > 0 {
		return o, invalidRequest(violations...)
	}
	o.Wait = firstSet(o.Wait, options.Wait, defaultWait)
	if o.OnInProgress == FailInProgress {
		o.Wait = 0
	}
	o.Timeout = firstSet(o.Timeout, options.Timeout, defaultTimeout)
	o.Owner = firstSet(o.Owner, options.Owner)
	o.OnError = firstSet(o.OnError, options.OnError)
	if o.IsTerminal == nil {
		o.IsTerminal = options.IsTerminal
	}
	if o.DescribeError == nil {
		o.DescribeError = options.DescribeError
	}
	if o.Codec == nil {
		o.Codec = JSONCodec{}
	}
	return o, nil
}

// sharedViolations returns the violations of the options that both an operation and a client may set.
func sharedViolations(wait, timeout time.Duration, owner string, onError OnError) []Violation {
	violations := textViolations("Owner", owner, 0, limits.MaxOwnerBytes)
	if wait < 0 {
		violations = append(violations, Violation{"Wait", "must not be negative"})
	}
	if timeout < 0 {
		violations = append(violations, Violation{"Timeout", "must not be negative"})
	}
	if onError != ReleaseOnError && onError != UnknownOnError {
		violations = append(violations, Violation{"OnError", "must be ReleaseOnError or UnknownOnError"})
	}
	return violations
}

func firstSet[T comparable](values ...T) T {
	var unset T
	for _, value := range values {
		if value != unset {
			return value
		}
	}
	return unset
}

// request returns the Claim of a run, without its claim id.
func (o *Operation) request() (*oncewardv1.ClaimRequest, *Error) {
	request := &oncewardv1.ClaimRequest{
		Namespace: o.Namespace, Key: o.Key, Owner: o.Owner, MarksBegin: o.MarksBegin && !o.AtMostOnce,
		AcceptAmbiguous: o.AcceptAmbiguous || o.Resolve != nil,
	}
	if o.Fingerprint != nil {
		fingerprint, err := Fingerprint(o.Fingerprint)
		if err != nil {
			return nil, errorFromCall(err)
		}
		request.Fingerprint = fingerprint
	}
	if o.AtMostOnce {
		request.Completion = &oncewardv1.Completion{}
	} else if o.Lease != 0 {
		request.Lease = durationpb.New(o.Lease)
	}
	if !o.KeyCreatedAt.IsZero() {
		request.KeyCreatedAt = timestamppb.New(o.KeyCreatedAt)
	}
	return request, nil
}
