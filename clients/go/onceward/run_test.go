package onceward_test

import (
	"bytes"
	"context"
	"errors"
	"log"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/onceward/onceward/clients/go/onceward"
	"github.com/onceward/onceward/clients/go/onceward/oncewardtest"
)

type charge struct {
	ID    string `json:"id"`
	Cents int64  `json:"cents"`
}

var charges = onceward.Operation{Namespace: "charges", Key: "order-1"}

func succeeds(context.Context, *onceward.Claim) (charge, error) { return charge{"ch_1", 100}, nil }

func TestARunWithinItselfIsRefusedAtOnce(t *testing.T) {
	service := oncewardtest.New(t, oncewardtest.Options{})
	other := onceward.Operation{Namespace: "mails", Key: "order-1"}
	var left context.Context
	value, err := onceward.Run(t.Context(), service.Client, charges, func(ctx context.Context, _ *onceward.Claim) (charge, error) {
		left = ctx
		return onceward.Run(ctx, service.Client, other, func(ctx context.Context, _ *onceward.Claim) (charge, error) {
			for _, operation := range []onceward.Operation{charges, other} {
				if _, err := onceward.Run(ctx, service.Client, operation, succeeds); !errors.Is(err, onceward.ErrInvalidRequest) {
					t.Errorf("a run within itself got %v", err)
				}
			}
			return charge{ID: "ch_1"}, nil
		})
	})
	if err != nil || value.ID != "ch_1" {
		t.Errorf("the run got %v, %v", value, err)
	}
	if value, err = onceward.Run(context.WithoutCancel(left), service.Client, charges, succeeds); err != nil || value.ID != "ch_1" {
		t.Errorf("a run that its function left behind got %v, %v", value, err)
	}
}

func TestDeliveriesAtOnceRunOnce(t *testing.T) {
	service := oncewardtest.New(t, oncewardtest.Options{})
	var calls atomic.Int32
	var deliveries sync.WaitGroup
	for range 50 {
		deliveries.Go(func() {
			value, err := onceward.Run(t.Context(), service.Client, charges,
				func(context.Context, *onceward.Claim) (charge, error) {
					calls.Add(1)
					return charge{"ch_1", 9007199254740991}, nil
				})
			if err != nil || value != (charge{"ch_1", 9007199254740991}) {
				t.Errorf("a delivery got %v, %v", value, err)
			}
		})
	}
	deliveries.Wait()
	if calls.Load() != 1 || service.Counts().Granted != 1 {
		t.Errorf("the function ran %d times, with %d claims", calls.Load(), service.Counts().Granted)
	}
}

func TestErrorsAreAskedForByReasonAndByType(t *testing.T) {
	var lines bytes.Buffer
	log.SetOutput(&lines)
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	service := oncewardtest.New(t, oncewardtest.Options{Policy: oncewardtest.Policy{Hold: true}})
	service.FailNext(oncewardtest.Complete, onceward.ErrInternal)
	_, err := onceward.Run(t.Context(), service.Client, charges, succeeds)
	var completion *onceward.CompletionError
	if !errors.As(err, &completion) || completion.Stored || completion.Effect.Value != (charge{"ch_1", 100}) {
		t.Fatalf("the first delivery got %v", err)
	}
	if !errors.Is(err, onceward.ErrInternal) {
		t.Errorf("%v is not an INTERNAL", err)
	}
	busy := charges
	busy.OnInProgress = onceward.FailInProgress
	_, err = onceward.Run(t.Context(), service.Client, busy, succeeds)
	var inProgress *onceward.InProgressError
	if !errors.As(err, &inProgress) || inProgress.Attempt != 1 || !errors.Is(err, onceward.ErrInProgress) {
		t.Errorf("a second delivery got %v", err)
	}
	service.Advance(30 * time.Second)
	_, err = onceward.Run(t.Context(), service.Client, charges, succeeds)
	var failed *onceward.Error
	if !errors.Is(err, onceward.ErrAmbiguous) || !errors.As(err, &failed) || failed.Remedy() == "" {
		t.Errorf("a delivery after the lease got %v", err)
	}
	broken := charges
	broken.Resolve = func(context.Context, *onceward.Claim) (onceward.Resolution, error) {
		return onceward.Unknown(), errors.New("the provider is down")
	}
	_, err = onceward.Run(t.Context(), service.Client, broken, succeeds)
	if !errors.Is(err, onceward.ErrAmbiguous) || strings.Count(lines.String(), "the provider is down") != 1 {
		t.Errorf("a delivery whose Resolve failed got %v; the log has %q", err, lines.String())
	}
}

// down is a connection to a service that says in colours that it is down.
type down struct{ grpc.ClientConnInterface }

func (down) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	return status.Error(codes.Unavailable, "\x1b[2Jdown\u009b\u202e")
}

func TestALineOfTheLogHasNoCharactersThatControlATerminal(t *testing.T) {
	var lines bytes.Buffer
	log.SetOutput(&lines)
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	for _, logger := range []*slog.Logger{nil, slog.New(slog.NewTextHandler(&lines, nil))} {
		client, err := onceward.NewWithConn(down{}, onceward.Options{Timeout: time.Millisecond, Logger: logger})
		if err != nil {
			t.Fatal(err)
		}
		operation := charges
		operation.OnUnavailable = onceward.ProceedUnavailable
		if _, err := onceward.Run(t.Context(), client, operation, succeeds); err != nil {
			t.Fatal(err)
		}
	}
	if written := lines.String(); strings.Count(written, "down") != 2 || strings.ContainsAny(written, "\x1b\u009b\u202e") {
		t.Errorf("the log has %q", written)
	}
}

func TestInvalidOptionsAreRefusedTogether(t *testing.T) {
	for _, address := range []string{"", "localhost:50051", "http://", "http://host/path", "http://user@host", "http://a,https://b", "http://a,", "unix:", "unix:x", "unix://host/x", "unix:/x?y", "unix:/x#y", "unix:/%20", "UNIX:/x"} {
		if _, err := onceward.New(address, onceward.Options{APIKey: "key"}); !errors.Is(err, onceward.ErrInvalidRequest) {
			t.Errorf("the address %q got %v", address, err)
		}
	}
	if _, err := onceward.New("http://localhost", onceward.Options{}); !errors.Is(err, onceward.ErrInvalidRequest) {
		t.Errorf("a client without a credential got %v", err)
	}
}

func TestTheFingerprintOfAStructIsThatOfItsJSON(t *testing.T) {
	ofStruct, err := onceward.Fingerprint(charge{"ch_1", 100})
	if err != nil {
		t.Fatal(err)
	}
	ofMap, err := onceward.Fingerprint(map[string]any{"cents": 100.0, "id": "ch_1"})
	if err != nil || string(ofStruct) != string(ofMap) {
		t.Errorf("they are %x and %x, %v", ofStruct, ofMap, err)
	}
	for name, value := range map[string]any{
		"a text within a struct that is not UTF-8":         charge{ID: "\xff"},
		"an integer within a struct that no float64 holds": charge{Cents: 9007199254740993},
		"a text that is not UTF-8":                         "\xff",
		"a struct with a field not exported":               struct{ id string }{"1"},
		"a channel":                                        make(chan int),
		"more than one value":                              []byte("1 2"),
	} {
		if _, err := onceward.Fingerprint(value); !errors.Is(err, onceward.ErrInvalidRequest) {
			t.Errorf("%s got %v", name, err)
		}
	}
}
