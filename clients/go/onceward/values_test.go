package onceward_test

import (
	"context"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/onceward/onceward/clients/go/onceward"
	"github.com/onceward/onceward/clients/go/onceward/oncewardtest"
)

// refusedBefore returns why a run of the type is refused; fails if its function runs.
func refusedBefore[T any](t *testing.T, service *oncewardtest.Service) string {
	t.Helper()
	_, err := onceward.Run(t.Context(), service.Client, charges, func(context.Context, *onceward.Claim) (T, error) {
		var none T
		t.Errorf("the function of a %T ran", none)
		return none, nil
	})
	if !errors.Is(err, onceward.ErrInvalidRequest) {
		t.Errorf("the run got %v", err)
		return ""
	}
	return err.Error()
}

func TestATypeThatJSONDoesNotKeepIsRefusedBeforeItsEffect(t *testing.T) {
	type base struct{ ID string }
	service := oncewardtest.New(t, oncewardtest.Options{})
	for part, message := range map[string]string{
		".note is not exported":       refusedBefore[[]struct{ ID, note string }](t, service),
		"Done is a chan int":          refusedBefore[struct{ Done chan int }](t, service),
		"is a func":                   refusedBefore[map[string]func()](t, service),
		"of the interface type error": refusedBefore[struct{ Err error }](t, service),
		"keys of the type bool":       refusedBefore[map[bool]string](t, service),
		"Sum.neg is not exported":     refusedBefore[struct{ Sum big.Int }](t, service),
		"base is not exported":        refusedBefore[struct{ *base }](t, service),
	} {
		if !strings.Contains(message, part) {
			t.Errorf("%q does not say that %s", message, part)
		}
	}
	type node struct {
		base
		At      time.Time
		Sum     *big.Int
		Any     any
		Next    []node
		counted int `json:"-"`
	}
	value, err := onceward.Run(t.Context(), service.Client, charges, func(context.Context, *onceward.Claim) (node, error) {
		return node{base: base{"n-1"}, Sum: big.NewInt(5), Next: []node{{}}, counted: 1}, nil
	})
	if err != nil || value.ID != "n-1" || value.Sum.Int64() != 5 || len(value.Next) != 1 || value.counted != 0 {
		t.Errorf("a run got %v, %v", value, err)
	}
}

// latin is a codec whose content type is not UTF-8.
type latin struct{ onceward.JSONCodec }

func (latin) Encode(any) (onceward.Encoded, error) {
	return onceward.Encoded{ContentType: "caf\xe9"}, nil
}

func TestAResultThatCannotBeSentIsStoredAsDone(t *testing.T) {
	service := oncewardtest.New(t, oncewardtest.Options{})
	operation := charges
	operation.Codec = latin{}
	var lost *onceward.CompletionError
	if _, err := onceward.Run(t.Context(), service.Client, operation, succeeds); !errors.As(err, &lost) || !lost.Stored {
		t.Errorf("it got %v", err)
	}
}
