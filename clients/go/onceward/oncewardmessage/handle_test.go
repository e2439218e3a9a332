package oncewardmessage_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/onceward/onceward/clients/go/onceward"
	"github.com/onceward/onceward/clients/go/onceward/oncewardmessage"
	"github.com/onceward/onceward/clients/go/onceward/oncewardtest"
)

type order struct {
	ID    string
	Cents int
}

type (
	options  = oncewardmessage.Options[order]
	delivery = oncewardmessage.Delivery[string]
	outcome  struct {
		kind   oncewardmessage.Kind
		action oncewardmessage.Action
		delay  time.Duration
	}
)

var charges = options{
	Namespace:   "charges",
	Key:         func(message order) (string, error) { return message.ID, nil },
	Fingerprint: func(message order) (any, error) { return message.Cents, nil },
}

var errBank = errors.New("the bank is down")

func deliver(t *testing.T, service *oncewardtest.Service, options options, message order, err error) delivery {
	t.Helper()
	return oncewardmessage.Handle(t.Context(), service.Client, message, options,
		func(_ context.Context, message order, claim *onceward.Claim) (string, error) {
			return "charged " + claim.Key, err
		})
}

func expect(t *testing.T, got delivery, kind oncewardmessage.Kind, action oncewardmessage.Action, delay time.Duration) {
	t.Helper()
	if want := (outcome{kind, action, delay}); (outcome{got.Kind, got.Action(), got.Delay}) != want {
		t.Errorf("a delivery got %+v, not %v", got, want)
	}
}

func TestAMessageWhoseKeyCannotBeReadIsRefused(t *testing.T) {
	service := oncewardtest.New(t, oncewardtest.Options{})
	unreadable := charges
	unreadable.Key = func(order) (string, error) { return "", errBank }
	expect(t, deliver(t, service, unreadable, order{}, nil), oncewardmessage.Refused, oncewardmessage.DeadLetter, 0)
}

func TestAnOutcomeThatIsNotStoredOrNotKnownIsPostponed(t *testing.T) {
	service := oncewardtest.New(t, oncewardtest.Options{Policy: oncewardtest.Policy{Hold: true}})
	service.FailNext(oncewardtest.Complete, onceward.ErrInternal)
	expect(t, deliver(t, service, charges, order{"o-1", 100}, nil), oncewardmessage.Postponed, oncewardmessage.Retry, 5*time.Second)
	service.Advance(30 * time.Second)
	got := deliver(t, service, charges, order{"o-1", 100}, nil)
	expect(t, got, oncewardmessage.Postponed, oncewardmessage.Retry, 5*time.Second)
	if !errors.Is(got.Err, onceward.ErrAmbiguous) {
		t.Errorf("the delivery has %v", got.Err)
	}
	asking := charges
	asking.Resolve = func(_ context.Context, _ *onceward.Claim, message order) (onceward.Resolution, error) {
		return onceward.Happened("found " + message.ID), nil
	}
	got = deliver(t, service, asking, order{"o-1", 100}, errBank)
	if expect(t, got, oncewardmessage.Duplicate, oncewardmessage.Acknowledge, 0); got.Value != "found o-1" {
		t.Errorf("the delivery has %v", got.Value)
	}
	invalid := charges
	invalid.Namespace = "Charges"
	expect(t, deliver(t, service, invalid, order{"o-2", 100}, nil), oncewardmessage.Postponed, oncewardmessage.Retry, 5*time.Second)
}

func TestACompletionErrorOfANestedRunReleasesTheClaim(t *testing.T) {
	service := oncewardtest.New(t, oncewardtest.Options{})
	nested := &onceward.CompletionError{Err: &onceward.Error{Reason: onceward.ErrInternal}, Stored: true}
	expect(t, deliver(t, service, charges, order{"o-1", 100}, nested), oncewardmessage.Released, oncewardmessage.Retry, 5*time.Second)
}
