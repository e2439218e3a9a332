package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/onceward/onceward/clients/go/onceward"
	"github.com/onceward/onceward/clients/go/onceward/oncewardhttp"
)

type runCase struct {
	Address        string   `json:"address"`
	Runs           []run    `json:"runs"`
	Tokens         []string `json:"tokens"`
	CloseAfterMs   *float64 `json:"closeAfterMs"`
	CloseTimeoutMs *float64 `json:"closeTimeoutMs"`
}

type run struct {
	Options        options  `json:"options"`
	Function       []step   `json:"function"`
	Resolve        [][]step `json:"resolve"`
	TerminalErrors []string `json:"terminalErrors"`
	CancelAfterMs  *float64 `json:"cancelAfterMs"`
	CloseBefore    bool     `json:"closeBefore"`
	Seen           []string `json:"seen"`
}

type options struct {
	Namespace       *string         `json:"namespace"`
	Key             *string         `json:"key"`
	Fingerprint     json.RawMessage `json:"fingerprint"`
	LeaseMs         float64         `json:"leaseMs"`
	WaitMs          *float64        `json:"waitMs"`
	TimeoutMs       *float64        `json:"timeoutMs"`
	Owner           string          `json:"owner"`
	OnInProgress    string          `json:"onInProgress"`
	OnUnavailable   string          `json:"onUnavailable"`
	OnError         string          `json:"onError"`
	AcceptAmbiguous bool            `json:"acceptAmbiguous"`
	Codec           string          `json:"codec"`
	ClaimID         string          `json:"claimId"`
	MarksBegin      bool            `json:"marksBegin"`
	Mode            string          `json:"mode"`
	Stores          string          `json:"stores"`
}

type step struct {
	DeriveKey      *string         `json:"deriveKey"`
	Send           *outgoing       `json:"send"`
	SaveCheckpoint *checkpoint     `json:"saveCheckpoint"`
	Begin          bool            `json:"begin"`
	AwaitLost      bool            `json:"awaitLost"`
	Return         json.RawMessage `json:"return"`
	Throw          *string         `json:"throw"`
	ThrowTerminal  *terminal       `json:"throwTerminal"`
	ThrowUnknown   *string         `json:"throwUnknown"`
	ThrowNoEffect  *string         `json:"throwNoEffect"`
	ThrowTimeout   *string         `json:"throwTimeout"`
	ThrowCaused    *throwCaused    `json:"throwCaused"`
	MarkUnknown    *string         `json:"markUnknown"`
	Panic          *string         `json:"panic"`
	Happened       json.RawMessage `json:"happened"`
	DidNotHappen   bool            `json:"didNotHappen"`
	StillOpen      *float64        `json:"stillOpen"`
	Unknown        bool            `json:"unknown"`
}

type throwCaused struct {
	Message string `json:"message"`
	Cause   string `json:"cause"`
}

// caused is an error with a cause that its message does not name.
type caused struct {
	message string
	cause   error
}

func (c *caused) Error() string { return c.message }
func (c *caused) Unwrap() error { return c.cause }

// timedOut is an error of a deadline, with this message.
type timedOut string

func (t timedOut) Error() string { return string(t) }
func (timedOut) Unwrap() error   { return context.DeadlineExceeded }

// causes are those of throwCaused.
var causes = map[string]error{
	"noEffect": &onceward.NoEffectError{}, "unknown": &onceward.OutcomeUnknownError{}, "timeout": context.DeadlineExceeded,
	"rpcDeadline":    status.Error(codes.DeadlineExceeded, "deadline"),
	"connectTimeout": &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded},
}

// outgoing is a request to another service. It is not sent.
type outgoing struct {
	Method string  `json:"method"`
	URL    string  `json:"url"`
	Key    *string `json:"key"`
	sent   any
}

func (o *outgoing) RoundTrip(request *http.Request) (*http.Response, error) {
	if keys := request.Header.Values("Idempotency-Key"); len(keys) > 0 {
		o.sent = keys[0]
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(""))}, nil
}

// key returns the header Idempotency-Key with which the request would be sent; nil for none.
func (o *outgoing) key(ctx context.Context) (any, error) {
	request, err := http.NewRequestWithContext(ctx, o.Method, o.URL, nil)
	if err != nil {
		return nil, err
	}
	if o.Key != nil {
		request.Header.Set("Idempotency-Key", *o.Key)
	}
	response, err := (&oncewardhttp.Transport{Base: o}).RoundTrip(request)
	if err != nil {
		return nil, err
	}
	return o.sent, response.Body.Close()
}

type checkpoint struct {
	Name  string          `json:"name"`
	State json.RawMessage `json:"state"`
}

type terminal struct {
	Message string          `json:"message"`
	Details json.RawMessage `json:"details"`
	Name    string          `json:"name"`
}

// performRuns performs the runs of a case. Returns the outcome of each, and what each call of a function saw.
func performRuns(line []byte) (any, error) {
	var given runCase
	if err := json.Unmarshal(line, &given); err != nil {
		return nil, err
	}
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	settings := onceward.Options{APIKey: "conformance", Owner: "conformance", Logger: quiet}
	if len(given.Tokens) > 0 {
		settings.APIKey, settings.Token = "", tokensOf(given.Tokens)
	}
	client, err := onceward.New(given.Address, settings)
	if err != nil {
		return nil, err
	}
	closed := make(chan struct{})
	if given.CloseAfterMs == nil {
		close(closed)
	} else {
		time.AfterFunc(duration(*given.CloseAfterMs), func() {
			defer close(closed)
			closeWithin(client, given.CloseTimeoutMs)
		})
	}
	functions, searches, outcomes := []report{}, []report{}, []report{}
	for _, each := range given.Runs {
		if each.CloseBefore {
			closeWithin(client, nil)
		}
		outcome, err := performRun(client, each, &functions, &searches)
		if err != nil {
			return nil, err
		}
		outcomes = append(outcomes, outcome)
	}
	<-closed
	closeWithin(client, nil)
	return report{"runs": outcomes, "functions": functions, "searches": searches}, nil
}

// tokensOf returns a source that gives each token once, and the last one for all later calls.
func tokensOf(tokens []string) func(context.Context) (string, error) {
	var given atomic.Int32
	return func(context.Context) (string, error) {
		token := tokens[min(int(given.Add(1)), len(tokens))-1]
		if token == "" {
			return "", errors.New("the issuer is down")
		}
		return token, nil
	}
}

func closeWithin(client *onceward.Client, timeoutMs *float64) {
	ctx := context.Background()
	if timeoutMs != nil {
		limited, cancel := context.WithTimeout(ctx, duration(*timeoutMs))
		defer cancel()
		ctx = limited
	}
	_ = client.Close(ctx) // Again of a closed connection.
}

func performRun(
	client *onceward.Client, given run, functions, searches *[]report,
) (outcome report, failed error) {
	operation, err := operationOf(given)
	if err != nil {
		return nil, err
	}
	if given.Resolve != nil {
		operation.Resolve = performSearches(given.Resolve, searches)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if given.CancelAfterMs != nil {
		time.AfterFunc(duration(*given.CancelAfterMs), cancel)
	}
	defer func() {
		if panicked := recover(); panicked != nil {
			outcome = report{"panicked": panicked}
		}
	}()
	if given.Seen != nil {
		return performSeen(ctx, client, operation, given.Seen), nil
	}
	result, err := onceward.RunDetailed(ctx, client, operation, func(ctx context.Context, claim *onceward.Claim) (any, error) {
		seen := describeClaim(claim)
		*functions = append(*functions, seen)
		return performSteps(ctx, given.Function, claim, seen)
	})
	if err != nil {
		return reportError(err), nil
	}
	return reportResult(result), nil
}

// performSeen asks whether keys were seen; of one key, by the call for one.
func performSeen(ctx context.Context, client *onceward.Client, operation onceward.Operation, keys []string) report {
	var seen []bool
	var err error
	if len(keys) == 1 {
		operation.Key = keys[0]
		seen = []bool{false}
		seen[0], err = client.Seen(ctx, operation)
	} else {
		seen, err = client.SeenAll(ctx, operation, keys)
	}
	if err != nil {
		return reportError(err)
	}
	return report{"seen": seen}
}

// performSearches returns a function whose calls perform these steps, the last ones again and again, and note what they saw.
func performSearches(calls [][]step, searches *[]report) func(context.Context, *onceward.Claim) (onceward.Resolution, error) {
	return func(ctx context.Context, claim *onceward.Claim) (onceward.Resolution, error) {
		seen := describeClaim(claim)
		seen["sinceMs"] = claim.SinceEffectMayHaveBegun().Seconds() * 1000
		*searches = append(*searches, seen)
		for _, each := range calls[min(len(*searches), len(calls))-1] {
			switch {
			case each.Happened != nil:
				value, err := readValue(each.Happened)
				return onceward.Happened(value), err
			case each.DidNotHappen:
				return onceward.DidNotHappen(), nil
			case each.StillOpen != nil:
				return onceward.StillOpen(duration(*each.StillOpen)), nil
			case each.Unknown:
				return onceward.Unknown(), nil
			}
			if _, err := performSteps(ctx, []step{each}, claim, seen); err != nil {
				return onceward.Unknown(), err
			}
		}
		return onceward.Unknown(), nil
	}
}

func operationOf(given run) (onceward.Operation, error) {
	operation := onceward.Operation{
		Namespace: "charges", Key: "order-1",
		Lease: duration(given.Options.LeaseMs), ClaimID: given.Options.ClaimID,
		Owner: given.Options.Owner, AcceptAmbiguous: given.Options.AcceptAmbiguous, MarksBegin: given.Options.MarksBegin,
		AtMostOnce: given.Options.Mode != "", StoresMark: given.Options.Stores != "",
	}
	if given.Options.Namespace != nil {
		operation.Namespace = *given.Options.Namespace
	}
	if given.Options.Key != nil {
		operation.Key = restored(*given.Options.Key)
	}
	if given.Options.TimeoutMs != nil {
		operation.Timeout = duration(*given.Options.TimeoutMs)
	}
	if given.Options.WaitMs != nil {
		operation.Wait = duration(*given.Options.WaitMs)
	}
	// A duration of 0 is unset in Go.
	if given.Options.OnInProgress == "throw" || (given.Options.WaitMs != nil && operation.Wait == 0) {
		operation.OnInProgress = onceward.FailInProgress
	}
	operation.OnUnavailable = choiceOf[onceward.OnUnavailable](given.Options.OnUnavailable, "throw", "proceed")
	operation.OnError = choiceOf[onceward.OnError](given.Options.OnError, "release", "unknown")
	if given.Options.Codec == "bytes" {
		operation.Codec = onceward.BytesCodec{}
	}
	if given.TerminalErrors != nil {
		operation.IsTerminal = func(err error) bool { return slices.Contains(given.TerminalErrors, err.Error()) }
	}
	if given.Options.Fingerprint != nil {
		value, err := readValue(given.Options.Fingerprint)
		if err != nil {
			return operation, err
		}
		operation.Fingerprint = plain(value)
	}
	return operation, nil
}

// choiceOf returns the choice that a word names: the first for no word, and -1, which is invalid, for another one.
func choiceOf[T ~int](word string, words ...string) T {
	return T(slices.Index(words, cmp.Or(word, words[0])))
}

func describeClaim(claim *onceward.Claim) report {
	seen := report{
		"guarded": claim.Guarded, "namespace": claim.Namespace, "key": claim.Key, "attempt": claim.Attempt,
		"fencingToken": tokenText(claim.FencingToken), "derivedKeys": []any{},
	}
	if claim.Checkpoint != nil {
		seen["checkpoint"] = reportCheckpoint(claim.Checkpoint)
	}
	return seen
}

func performSteps(ctx context.Context, steps []step, claim *onceward.Claim, seen report) (any, error) {
	for _, each := range steps {
		switch {
		case each.DeriveKey != nil:
			seen["derivedKeys"] = append(seen["derivedKeys"].([]any), claim.DeriveKey(*each.DeriveKey))
		case each.Send != nil:
			key, err := each.Send.key(ctx)
			if err != nil {
				return nil, err
			}
			seen["derivedKeys"] = append(seen["derivedKeys"].([]any), key)
		case each.SaveCheckpoint != nil:
			state, err := readValue(each.SaveCheckpoint.State)
			if err != nil {
				return nil, err
			}
			if err := claim.SaveCheckpoint(ctx, each.SaveCheckpoint.Name, state); err != nil {
				return nil, err
			}
		case each.Begin:
			if err := claim.Begin(ctx); err != nil {
				return nil, err
			}
		case each.AwaitLost:
			<-ctx.Done()
			seen["lost"] = lossOf(context.Cause(ctx))
		case each.Return != nil:
			return readValue(each.Return)
		case each.Throw != nil:
			return nil, errors.New(*each.Throw)
		case each.ThrowUnknown != nil:
			return nil, &onceward.OutcomeUnknownError{Message: *each.ThrowUnknown}
		case each.ThrowNoEffect != nil:
			return nil, &onceward.NoEffectError{Message: *each.ThrowNoEffect}
		case each.ThrowTimeout != nil:
			return nil, timedOut(*each.ThrowTimeout)
		case each.ThrowCaused != nil:
			return nil, &caused{each.ThrowCaused.Message, causes[each.ThrowCaused.Cause]}
		case each.MarkUnknown != nil:
			_ = claim.OutcomeUnknown(errors.New(*each.MarkUnknown))
		case each.Panic != nil:
			panic(*each.Panic)
		case each.ThrowTerminal != nil:
			details, err := readValue(each.ThrowTerminal.Details)
			if err != nil {
				return nil, err
			}
			return nil, &onceward.TerminalError{
				Message: each.ThrowTerminal.Message, Details: details, Name: each.ThrowTerminal.Name,
			}
		}
	}
	return nil, nil
}

// lossOf returns what ended the context of a function: the reason of the error, or "cancelled".
func lossOf(cause error) any {
	var failed *onceward.Error
	if errors.As(cause, &failed) {
		return failed.Reason
	}
	return "cancelled"
}
