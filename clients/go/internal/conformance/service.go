package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/onceward/onceward/clients/go/onceward"
	"github.com/onceward/onceward/clients/go/onceward/oncewardtest"
	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

// serviceCase has calls of the service in memory, oncewardtest.
type serviceCase struct {
	Policy struct {
		KeyRetentionS      int    `json:"keyRetentionS"`
		ResultRetentionS   int    `json:"resultRetentionS"`
		FailureRetentionS  int    `json:"failureRetentionS"`
		DefaultLeaseMs     int    `json:"defaultLeaseMs"`
		MaxLeaseMs         int    `json:"maxLeaseMs"`
		OnLeaseExpiry      string `json:"onLeaseExpiry"`
		MaxResultBytes     int    `json:"maxResultBytes"`
		RequireFingerprint bool   `json:"requireFingerprint"`
		LateKeys           string `json:"lateKeys"`
	} `json:"policy"`
	Steps []struct {
		Call          string         `json:"call"`
		Request       map[string]any `json:"request"`
		AdvanceMs     float64        `json:"advanceMs"`
		FailNext      string         `json:"failNext"`
		Reason        string         `json:"reason"`
		LoseNextReply string         `json:"loseNextReply"`
	} `json:"steps"`
}

// test stands for the test that a service in memory belongs to.
type test struct {
	testing.TB
	cleanups []func()
}

func (t *test) Helper() {}

func (t *test) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

func (t *test) Cleanup(cleanup func()) { t.cleanups = append(t.cleanups, cleanup) }

func (t *test) end() {
	for _, cleanup := range slices.Backward(t.cleanups) {
		cleanup()
	}
}

// performService makes the calls of a case. Returns the answer to each.
func performService(line []byte) (any, error) {
	var given serviceCase
	if err := json.Unmarshal(line, &given); err != nil {
		return nil, err
	}
	policy := given.Policy
	owner := &test{}
	defer owner.end()
	service := oncewardtest.New(owner, oncewardtest.Options{
		Now: time.Date(2029, 1, 1, 0, 0, 0, 0, time.UTC),
		Policy: oncewardtest.Policy{
			KeyRetention:       time.Duration(policy.KeyRetentionS) * time.Second,
			ResultRetention:    time.Duration(policy.ResultRetentionS) * time.Second,
			FailureRetention:   time.Duration(policy.FailureRetentionS) * time.Second,
			DefaultLease:       time.Duration(policy.DefaultLeaseMs) * time.Millisecond,
			MaxLease:           time.Duration(policy.MaxLeaseMs) * time.Millisecond,
			Hold:               policy.OnLeaseExpiry == "HOLD",
			MaxResultBytes:     policy.MaxResultBytes,
			RequireFingerprint: policy.RequireFingerprint,
			LateKeys:           oncewardtest.LateKeys(policy.LateKeys),
		},
	})
	var tokens []string
	answers := []any{}
	for _, step := range given.Steps {
		switch {
		case step.FailNext != "":
			service.FailNext(callName(step.FailNext), onceward.Reason(step.Reason))
		case step.LoseNextReply != "":
			service.LoseNextReply(callName(step.LoseNextReply))
		case step.Call != "":
			answer, err := callService(service, step.Call, step.Request, &tokens)
			if err != nil {
				return nil, err
			}
			answers = append(answers, answer)
		default:
			service.Advance(duration(step.AdvanceMs))
		}
	}
	return report{"answers": answers}, nil
}

func callName(name string) oncewardtest.Call {
	return oncewardtest.Call(strings.ToUpper(name[:1]) + name[1:])
}

// callService makes a call. Tokens are "#1", "#2", … in the order in which claims were granted.
func callService(service *oncewardtest.Service, name string, given map[string]any, tokens *[]string) (any, error) {
	if token, isText := given["fencingToken"].(string); isText && strings.HasPrefix(token, "#") {
		at, err := strconv.Atoi(token[1:])
		if err != nil {
			return nil, err
		}
		given["fencingToken"] = (*tokens)[at-1]
	}
	text, err := json.Marshal(given)
	if err != nil {
		return nil, err
	}
	response, err := answerOf(service, name, text)
	if err != nil {
		return reportRefusal(err), nil
	}
	written, err := protojson.Marshal(response)
	if err != nil {
		return nil, err
	}
	var answer map[string]any
	if err := json.Unmarshal(written, &answer); err != nil {
		return nil, err
	}
	if claimed, is := answer["claimed"].(map[string]any); is {
		if token := fmt.Sprint(claimed["fencingToken"]); !slices.Contains(*tokens, token) {
			*tokens = append(*tokens, token)
		}
		number(claimed, *tokens)
	}
	if record, is := answer["record"].(map[string]any); is {
		number(record, *tokens)
	}
	return report{"response": answer}, nil
}

func reportRefusal(err error) report {
	refusal := status.Convert(err)
	refused := report{"code": int(refusal.Code())}
	for _, detail := range refusal.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			refused["reason"], refused["metadata"] = detail.GetReason(), detail.GetMetadata()
		case *errdetails.BadRequest:
			fields := []string{}
			for _, each := range detail.GetFieldViolations() {
				fields = append(fields, each.GetField())
			}
			refused["fields"] = fields
		}
	}
	return report{"error": refused}
}

func number(part map[string]any, tokens []string) {
	part["fencingToken"] = fmt.Sprintf("#%d", slices.Index(tokens, fmt.Sprint(part["fencingToken"]))+1)
}

func answerOf(service *oncewardtest.Service, name string, text []byte) (proto.Message, error) {
	ctx := context.Background()
	switch name {
	case "claim":
		return answered(ctx, text, &oncewardv1.ClaimRequest{}, service.Claim)
	case "complete":
		return answered(ctx, text, &oncewardv1.CompleteRequest{}, service.Complete)
	case "release":
		return answered(ctx, text, &oncewardv1.ReleaseRequest{}, service.Release)
	case "extendLease":
		return answered(ctx, text, &oncewardv1.ExtendLeaseRequest{}, service.ExtendLease)
	default:
		return answered(ctx, text, &oncewardv1.LookupRequest{}, service.Lookup)
	}
}

func answered[Request, Response proto.Message](
	ctx context.Context, text []byte, request Request, call func(context.Context, Request) (Response, error),
) (proto.Message, error) {
	if err := protojson.Unmarshal(text, request); err != nil {
		return nil, err
	}
	return call(ctx, request)
}
