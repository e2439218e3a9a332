package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"

	"github.com/onceward/onceward/clients/go/onceward"
	"github.com/onceward/onceward/clients/go/onceward/oncewardmessage"
)

type messageCase struct {
	Address    string     `json:"address"`
	Deliveries []delivery `json:"deliveries"`
	Options    struct {
		RedeliverAfterMs    float64 `json:"redeliverAfterMs"`
		MaxRedeliverAfterMs float64 `json:"maxRedeliverAfterMs"`
		MaxAttempts         int     `json:"maxAttempts"`
		OnError             string  `json:"onError"`
		MarksBegin          bool    `json:"marksBegin"`
		Mode                string  `json:"mode"`
		Fingerprint         string  `json:"fingerprint"`
	} `json:"options"`
}

type delivery struct {
	Key      string `json:"key"`
	Function []step `json:"function"`
}

var actions = map[oncewardmessage.Action]string{
	oncewardmessage.Acknowledge: "acknowledge", oncewardmessage.DeadLetter: "dead-letter", oncewardmessage.Retry: "retry",
}

// performMessages handles the deliveries of a case. Returns the outcome of each, and how often a function was called.
func performMessages(line []byte) (any, error) {
	var given messageCase
	if err := json.Unmarshal(line, &given); err != nil {
		return nil, err
	}
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	client, err := onceward.New(given.Address, onceward.Options{APIKey: "conformance", Owner: "conformance", Logger: quiet})
	if err != nil {
		return nil, err
	}
	defer closeWithin(client, nil)
	options := oncewardmessage.Options[delivery]{
		Namespace: "charges", Key: func(message delivery) (string, error) { return message.Key, nil },
		MaxAttempts:    given.Options.MaxAttempts,
		MarksBegin:     given.Options.MarksBegin,
		AtMostOnce:     given.Options.Mode != "",
		RedeliverAfter: duration(given.Options.RedeliverAfterMs), MaxRedeliverAfter: duration(given.Options.MaxRedeliverAfterMs),
	}
	if given.Options.Fingerprint != "" {
		options.Fingerprint = func(delivery) (any, error) { return given.Options.Fingerprint, nil }
	}
	if given.Options.OnError == "unknown" {
		options.OnError = onceward.UnknownOnError
	}
	outcomes, functions := []report{}, 0
	for _, each := range given.Deliveries {
		made := oncewardmessage.Handle(context.Background(), client, each, options,
			func(ctx context.Context, message delivery, claim *onceward.Claim) (any, error) {
				functions++
				return performSteps(ctx, message.Function, claim, report{"derivedKeys": []any{}})
			})
		outcome := report{"kind": made.Kind, "action": actions[made.Action()]}
		if made.Value != nil {
			outcome["value"] = writeValue(made.Value)
		}
		if made.Err != nil {
			outcome["error"] = reportError(made.Err)
		}
		if made.Delay != 0 {
			outcome["delayMs"] = millis(made.Delay)
		}
		outcomes = append(outcomes, outcome)
	}
	return report{"deliveries": outcomes, "functions": functions}, nil
}
