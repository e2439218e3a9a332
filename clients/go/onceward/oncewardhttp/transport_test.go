package oncewardhttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/onceward/onceward/clients/go/onceward"
	"github.com/onceward/onceward/clients/go/onceward/internal/outgoing/outgoingtest"
	"github.com/onceward/onceward/clients/go/onceward/oncewardhttp"
	"github.com/onceward/onceward/clients/go/onceward/oncewardtest"
)

func TestAfterACrashTheNextServiceGetsTheSameKeyAndHasOneEffect(t *testing.T) {
	bank := start(t, oncewardhttp.Options{}, created)
	client := http.Client{Transport: &oncewardhttp.Transport{}}
	answer := outgoingtest.CrashAndRepeat(t, func(ctx context.Context) (string, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, bank.url+"/charges/1", strings.NewReader("10"))
		if err != nil {
			return "", err
		}
		request.Header.Set("Account", "a")
		response, err := client.Do(request)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%d %s", response.StatusCode, response.Header.Get("Idempotency-Replayed")), response.Body.Close()
	})
	if answer != "201 true" || bank.calls.Load() != 1 {
		t.Errorf("%q after %d calls", answer, bank.calls.Load())
	}
}

// bank notes the key of a request in place of sending it.
type bank struct{ key string }

func (b *bank) RoundTrip(r *http.Request) (*http.Response, error) {
	b.key = r.Header.Get("Idempotency-Key")
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(""))}, nil
}

func keySent(ctx context.Context, t *testing.T, name func(*http.Request) string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://bank/charges?2", nil)
	if err != nil {
		t.Error(err)
		return ""
	}
	var to bank
	transport := oncewardhttp.Transport{Base: &to, Name: name}
	response, err := transport.RoundTrip(request)
	if err != nil || len(request.Header) != 0 || response.Body.Close() != nil {
		t.Errorf("%v; the caller's request has %v", err, request.Header)
	}
	return to.key
}

func TestAHundredConcurrentClaimsSendTheirOwnKeysUntilTheyEnd(t *testing.T) {
	orders := oncewardtest.New(t, oncewardtest.Options{})
	var running, ended sync.WaitGroup
	running.Add(100)
	for i := range 100 {
		ended.Go(func() {
			var left context.Context
			order := onceward.Operation{Namespace: "orders", Key: fmt.Sprint("order-", i)}
			_, err := onceward.Run(t.Context(), orders.Client, order, func(ctx context.Context, claim *onceward.Claim) (any, error) {
				left = ctx
				running.Done()
				running.Wait()
				first, second := keySent(ctx, t, nil), keySent(ctx, t, func(r *http.Request) string { return r.URL.RawQuery })
				if first != `"`+claim.DeriveKey("POST bank/charges")+`"` || second != `"`+claim.DeriveKey("2")+`"` {
					t.Errorf("%s sent %s and %s", order.Key, first, second)
				}
				return nil, nil
			})
			if key := keySent(left, t, nil); err != nil || key != "" {
				t.Errorf("%v; after its end, %s sent %s", err, order.Key, key)
			}
		})
	}
	ended.Wait()
	if key := keySent(t.Context(), t, nil); key != "" {
		t.Errorf("without a claim, %s was sent", key)
	}
}
