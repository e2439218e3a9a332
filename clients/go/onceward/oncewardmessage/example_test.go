package oncewardmessage_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/onceward/onceward/clients/go/onceward"
	"github.com/onceward/onceward/clients/go/onceward/oncewardmessage"
	"github.com/onceward/onceward/clients/go/onceward/oncewardtest"
)

type payment struct {
	OrderID string
	Cents   int
}

func charge(_ context.Context, payment payment, claim *onceward.Claim) (string, error) {
	return fmt.Sprint("charged ", payment.Cents, " with the key ", claim.DeriveKey("bank")), nil
}

// consume handles the payments of one partition in their order. A broker with a delay for each message takes delivery.Delay instead.
func consume(ctx context.Context, client *onceward.Client, payments []payment) (committed, dead int) {
	options := oncewardmessage.Options[payment]{
		Namespace: "charges",
		Key:       func(message payment) (string, error) { return message.OrderID, nil },
	}
	for committed < len(payments) && ctx.Err() == nil {
		switch delivery := oncewardmessage.Handle(ctx, client, payments[committed], options, charge); delivery.Action() {
		case oncewardmessage.Acknowledge:
			committed++
		case oncewardmessage.DeadLetter:
			dead++
			committed++
		case oncewardmessage.Retry:
			select {
			case <-time.After(delivery.Delay):
			case <-ctx.Done():
			}
		}
	}
	return committed, dead
}

func TestTheExampleCommitsEachMessage(t *testing.T) {
	service := oncewardtest.New(t, oncewardtest.Options{})
	committed, dead := consume(t.Context(), service.Client, []payment{{"o-1", 100}, {"o-1", 100}, {"", 100}})
	if committed != 3 || dead != 1 || service.Counts().Granted != 1 {
		t.Errorf("%d are committed, %d are dead, %d were claimed", committed, dead, service.Counts().Granted)
	}
}
