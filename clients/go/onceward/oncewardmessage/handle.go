// Package oncewardmessage handles deliveries of messages of any broker: one effect for all deliveries of an operation.
//
//	delivery := oncewardmessage.Handle(ctx, client, message, options, charge)
//	switch delivery.Action() {
//	case oncewardmessage.Acknowledge:
//		// Commit the message.
//	case oncewardmessage.DeadLetter:
//		// Send it to the dead-letter queue, with delivery.Err, and commit it then.
//	case oncewardmessage.Retry:
//		// Have it delivered again in delivery.Delay. Until it is settled, commit no later message of a partition.
//	}
package oncewardmessage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/onceward/onceward/clients/go/onceward"
	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

// Options say how messages are identified, and tried again. Namespace and Key are required.
type Options[Message any] struct {
	// See onceward.Operation. Default of Wait: not at all, because the consumer has other messages to handle.
	Namespace  string
	Lease      time.Duration
	Wait       time.Duration
	Timeout    time.Duration
	Owner      string
	IsTerminal func(error) bool
	OnError    onceward.OnError
	MarksBegin bool
	// As in onceward.Operation; a message whose function failed has failed, and is not tried again. Refused with Resolve.
	AtMostOnce bool
	// Finds out what became of an earlier attempt. See onceward.Operation.
	Resolve func(ctx context.Context, claim *onceward.Claim, message Message) (onceward.Resolution, error)
	// Returns the operation's key, as its producer made it, such as an order's number; never the id of a delivery. A message for which
	// it fails, or returns "", is refused.
	Key func(Message) (string, error)
	// Returns what the key belongs to, as onceward.Operation has it. A message for which it fails is refused. Default: not compared.
	Fingerprint func(Message) (any, error)
	// Returns when the key was made. Not called for a key that contains its time. Default: unknown.
	KeyCreatedAt func(Message) time.Time
	// After how many attempts the operation fails permanently: an error on the last one is stored as an onceward.TerminalError, and
	// if that ended without an outcome, the next attempt stores one without a call of the function. Negative: never. Default: 20, which
	// take about 70 minutes with the default delays.
	MaxAttempts int
	// How long until a message that could not be handled is tried again. After an error of the function, doubled for each attempt
	// before, up to MaxRedeliverAfter. Default: 5 s, at most a day.
	RedeliverAfter time.Duration
	// Default: 5 min, or RedeliverAfter if that is longer; at most a day.
	MaxRedeliverAfter time.Duration
}

const (
	// Longer than most outages of a provider, with the default delays.
	defaultMaxAttempts = 20
	// Short enough for callers that wait for the outcome, long enough for a service that is down.
	defaultRedeliverAfter = 5 * time.Second
	// Rare enough for a provider that is down for an hour, and soon enough after it is back.
	defaultMaxRedeliverAfter = 5 * time.Minute
	maxDelay                 = 24 * time.Hour
)

// Kind is the outcome of a delivery.
type Kind string

const (
	// Processed: the function ran now, and the operation is stored as done.
	Processed Kind = "processed"
	// Duplicate: the operation was done before; Err is its *onceward.TerminalError if it failed.
	Duplicate Kind = "duplicate"
	// Failed: the operation failed permanently now, with the *onceward.TerminalError in Err, or ended its last attempt.
	Failed Kind = "failed"
	// Refused: the message can't be claimed, and its next delivery could not either: it has no valid key, its key belongs to another
	// fingerprint, or is too old.
	Refused Kind = "refused"
	// Released: the function returned the error in Err. The next delivery runs it again, or the namespace's policy decides if the
	// effect may have happened.
	Released Kind = "released"
	// Postponed: another holder runs the operation, it is ambiguous, or the service was unreachable: see Err.
	Postponed Kind = "postponed"
)

// Action is what the broker is told.
type Action int

const (
	// Retry has the message delivered again in Delivery.Delay.
	Retry Action = iota
	// Acknowledge commits the message.
	Acknowledge
	// DeadLetter keeps the message for a person, and commits it.
	DeadLetter
)

// Delivery is the outcome of one delivery of a message.
type Delivery[Value any] struct {
	Kind Kind
	// "" if the message has none.
	Key string
	// What the function returned, now or before; unset if it is not available.
	Value Value
	// 0 if the function was not called.
	Attempt int
	// Nil for Processed, and for a Duplicate that succeeded.
	Err error
	// Until the message is tried again; 0 for one that is settled.
	Delay time.Duration
}

// Action returns what to tell the broker. After a crash before it is told, the next delivery has the same action.
func (d Delivery[Value]) Action() Action {
	switch {
	case d.Kind == Released, d.Kind == Postponed:
		return Retry
	case d.Err == nil:
		return Acknowledge
	default:
		return DeadLetter
	}
}

// Handle handles one delivery of a message, and calls the function unless its operation was done before. Options that are invalid
// postpone each message, with onceward.ErrInvalidRequest.
func Handle[Message, Value any](
	ctx context.Context, client *onceward.Client, message Message, options Options[Message],
	fn func(ctx context.Context, message Message, claim *onceward.Claim) (Value, error),
) Delivery[Value] {
	if refused := options.setDefaults(); refused != nil {
		return Delivery[Value]{Kind: Postponed, Err: refused, Delay: defaultRedeliverAfter}
	}
	operation, err := options.operation(message)
	if err != nil {
		return Delivery[Value]{Kind: Refused, Key: operation.Key, Err: err}
	}
	made := Delivery[Value]{Key: operation.Key}
	var called *onceward.Claim
	var own error
	result, err := onceward.RunDetailed(ctx, client, operation,
		func(ctx context.Context, claim *onceward.Claim) (value Value, err error) {
			called = claim
			if operation.LastAttempt > 0 && claim.Attempt > operation.LastAttempt {
				text := fmt.Sprintf("%d attempts ended without an outcome, and no other is made.", claim.Attempt-1)
				return value, &onceward.TerminalError{Message: text}
			}
			value, own = fn(ctx, message, claim)
			if operation.AtMostOnce {
				own = settled(claim, own)
			}
			return value, own
		})
	if called == nil {
		made.Kind, made.Value, made.Err = Duplicate, result.Value, err
		return made.withoutRunning(options.RedeliverAfter, options.Fingerprint != nil)
	}
	made.Kind, made.Value, made.Attempt, made.Err = Processed, result.Value, called.Attempt, err
	return made.afterRunning(called, own, options.AtMostOnce, options.RedeliverAfter, options.backoff(called.Attempt))
}

// withoutRunning returns the outcome if the function was not called.
func (d Delivery[Value]) withoutRunning(delay time.Duration, hasFingerprint bool) Delivery[Value] {
	var terminal *onceward.TerminalError
	var failed *onceward.Error
	switch {
	case d.Err == nil, errors.As(d.Err, &terminal):
	case !errors.As(d.Err, &failed):
		d.Kind, d.Delay = Released, delay
	case failed.Class() == oncewardv1.ReasonClass_REASON_CLASS_GONE:
		d.Err = nil
	case isAboutMessage(failed, hasFingerprint):
		d.Kind = Refused
	default:
		d.Kind, d.Delay = Postponed, max(delay, min(failed.RetryDelay, maxDelay))
	}
	return d
}

// afterRunning returns the outcome if the function was called, and returned its own error.
func (d Delivery[Value]) afterRunning(
	claim *onceward.Claim, own error, isSettled bool, delay, backoff time.Duration,
) Delivery[Value] {
	if d.Err == nil {
		return d
	}
	lost, isLost := d.Err.(*onceward.CompletionError)
	_, isTerminal := d.Err.(*onceward.TerminalError)
	switch {
	case isTerminal && (claim.MarkedUnknown() == nil || isSettled):
		d.Kind = Failed
	case !isLost || d.Err == own:
		// A CompletionError of a nested run says nothing about this claim.
		d.Kind, d.Delay = Released, backoff
	case !lost.Stored:
		d.Kind, d.Delay = Postponed, delay
	case lost.Effect.Err != nil:
		d.Kind, d.Err = Failed, lost.Effect.Err
	default:
		// Stored without its value, but as done: the broker needs no more.
		d.Value, _ = lost.Effect.Value.(Value)
		d.Err = nil
	}
	return d
}

// settled returns the error of a function that runs at most once as a permanent one, also if it does not know its outcome: the next
// delivery would be a duplicate.
func settled(claim *onceward.Claim, err error) error {
	if marked := claim.MarkedUnknown(); marked != nil && err == nil {
		err = marked
	}
	var terminal *onceward.TerminalError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &terminal):
		return terminal
	}
	return &onceward.TerminalError{Message: err.Error(), Name: fmt.Sprintf("%T", err), Cause: err}
}

// isAboutMessage returns whether the message itself is invalid or too old, not the consumer's settings, so that no delay would help. A
// policy may require a fingerprint that the consumer has no option for.
func isAboutMessage(failed *onceward.Error, hasFingerprint bool) bool {
	switch failed.Class() {
	case oncewardv1.ReasonClass_REASON_CLASS_REUSED, oncewardv1.ReasonClass_REASON_CLASS_TOO_OLD:
		return true
	default:
		return failed.Reason == onceward.ErrInvalidRequest && slices.ContainsFunc(failed.Violations, func(each onceward.Violation) bool {
			isFingerprint := each.Field == "fingerprint" && hasFingerprint
			return isFingerprint || slices.Contains([]string{"Key", "KeyCreatedAt", "key", "key_created_at"}, each.Field)
		})
	}
}

func (o *Options[Message]) setDefaults() error {
	if o.Key == nil {
		return invalid("Key", "must be set")
	}
	if o.RedeliverAfter == 0 {
		o.RedeliverAfter = defaultRedeliverAfter
	}
	if o.MaxRedeliverAfter == 0 {
		o.MaxRedeliverAfter = max(defaultMaxRedeliverAfter, o.RedeliverAfter)
	}
	if o.RedeliverAfter < 0 || o.RedeliverAfter > o.MaxRedeliverAfter || o.MaxRedeliverAfter > maxDelay {
		return invalid("RedeliverAfter", fmt.Sprintf("must be above 0, and at most MaxRedeliverAfter, which is at most %s", maxDelay))
	}
	if o.AtMostOnce {
		o.MaxAttempts = 1
	}
	if o.MaxAttempts == 0 {
		o.MaxAttempts = defaultMaxAttempts
	}
	return nil
}

// operation returns the operation of a message. Fails with onceward.ErrInvalidRequest if it has none.
func (o *Options[Message]) operation(message Message) (onceward.Operation, error) {
	operation := onceward.Operation{
		Namespace: o.Namespace, Lease: o.Lease, Wait: o.Wait, Timeout: o.Timeout, Owner: o.Owner,
		IsTerminal: o.IsTerminal, OnError: o.OnError, MarksBegin: o.MarksBegin, LastAttempt: max(0, o.MaxAttempts),
		AtMostOnce: o.AtMostOnce,
	}
	if o.Wait == 0 {
		operation.OnInProgress = onceward.FailInProgress
	}
	if o.Resolve != nil {
		operation.Resolve = func(ctx context.Context, claim *onceward.Claim) (onceward.Resolution, error) {
			return o.Resolve(ctx, claim, message)
		}
	}
	var err error
	if operation.Key, err = o.Key(message); err != nil {
		return operation, invalid("Key", "of the message can't be read: "+err.Error())
	}
	if operation.Key == "" {
		return operation, invalid("Key", "is missing in the message")
	}
	if o.Fingerprint != nil {
		if operation.Fingerprint, err = o.Fingerprint(message); err != nil {
			return operation, invalid("Fingerprint", "of the message can't be read: "+err.Error())
		}
	}
	if _, isInKey := onceward.KeyTime(operation.Key); !isInKey && o.KeyCreatedAt != nil {
		operation.KeyCreatedAt = o.KeyCreatedAt(message)
	}
	return operation, nil
}

// backoff returns how long until a message is tried again whose function failed on this attempt.
func (o *Options[Message]) backoff(attempt int) time.Duration {
	delay := o.RedeliverAfter
	for ; attempt > 1 && delay < o.MaxRedeliverAfter; attempt-- {
		delay *= 2
	}
	return min(delay, o.MaxRedeliverAfter)
}

func invalid(field, description string) error {
	return &onceward.Error{
		Reason: onceward.ErrInvalidRequest, Message: field + " " + description,
		Violations: []onceward.Violation{{Field: field, Description: description}},
	}
}
