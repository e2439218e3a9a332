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

	"google.golang.org/protobuf/encoding/protojson"

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
		ReclaimWithinS     int    `json:"reclaimWithinS"`
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
			ReclaimWithin:      time.Duration(policy.ReclaimWithinS) * time.Second,
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
	// A batch of one, because its items name their calls.
	item, err := json.Marshal(map[string]any{"items": []any{map[string]any{name: given}}})
	if err != nil {
		return nil, err
	}
	request := &oncewardv1.BatchRequest{}
	if err := protojson.Unmarshal(item, request); err != nil {
		return nil, err
	}
	response, err := service.Batch(context.Background(), request)
	if err != nil {
		return nil, err
	}
	reply := response.GetItems()[0]
	if refused := reply.GetError(); refused != nil {
		return reportRefusal(refused), nil
	}
	written, err := protojson.Marshal(reply)
	if err != nil {
		return nil, err
	}
	var answers map[string]map[string]any
	if err := json.Unmarshal(written, &answers); err != nil {
		return nil, err
	}
	answer := answers[name]
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

func reportRefusal(refused *oncewardv1.BatchItemError) report {
	fields := []string{}
	for _, each := range refused.GetFieldViolations() {
		fields = append(fields, each.GetField())
	}
	return report{"error": report{
		"code": refused.GetCode(), "reason": strings.TrimPrefix(refused.GetReason().String(), "ERROR_REASON_"),
		"metadata": refused.GetMetadata(), "fields": fields,
	}}
}

func number(part map[string]any, tokens []string) {
	part["fencingToken"] = fmt.Sprintf("#%d", slices.Index(tokens, fmt.Sprint(part["fencingToken"]))+1)
}
