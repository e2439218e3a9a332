package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/onceward/onceward/clients/go/onceward"
)

// Longer than a provider takes between a request and its charge, on a machine that is busy.
const longestCharge = time.Second

const retryAfter = 200 * time.Millisecond

type provider struct {
	Kind  string `json:"kind"`
	URL   string `json:"url"`
	LagMs int    `json:"lagMs"`
}

type charge struct {
	Operation    string `json:"operation,omitempty"`
	Key          string `json:"key,omitempty"`
	Attempt      int    `json:"attempt,omitempty"`
	FencingToken int64  `json:"fencingToken,omitempty"`
	ID           int    `json:"id,omitempty"`
	Status       string `json:"status,omitempty"`
}

// resolvers find out what became of an earlier attempt's charge, at a provider of each kind that lets a caller do so.
var resolvers = map[string]func(context.Context, provider, *onceward.Claim) (onceward.Resolution, error){
	"stored-answer": byStoredAnswer, "latest-status": byLatestStatus, "cancel": byCancel, "search": bySearch,
}

func byStoredAnswer(ctx context.Context, p provider, claim *onceward.Claim) (onceward.Resolution, error) {
	status, answer, err := p.post(ctx, claim)
	switch {
	case err == nil && status == http.StatusOK:
		return onceward.Happened(answer.ID), nil
	case status == http.StatusConflict:
		return onceward.StillOpen(retryAfter), nil
	}
	return onceward.Unknown(), err
}

func byLatestStatus(ctx context.Context, p provider, claim *onceward.Claim) (onceward.Resolution, error) {
	var known charge
	status, err := p.ask(ctx, http.MethodGet, "/"+p.keyOf(claim, claim.Attempt), nil, &known)
	switch {
	case status == http.StatusNotFound:
		return onceward.DidNotHappen(), nil
	case err == nil && known.Status == "succeeded":
		return onceward.Happened(known.ID), nil
	}
	return onceward.StillOpen(retryAfter), err
}

func byCancel(ctx context.Context, p provider, claim *onceward.Claim) (onceward.Resolution, error) {
	for attempt := 1; attempt < claim.Attempt; attempt++ {
		if status, err := p.ask(ctx, http.MethodDelete, "/"+p.keyOf(claim, attempt), nil, nil); status != http.StatusOK {
			return onceward.Unknown(), err
		}
	}
	return onceward.DidNotHappen(), nil
}

func bySearch(ctx context.Context, p provider, claim *onceward.Claim) (onceward.Resolution, error) {
	var found []charge
	_, err := p.ask(ctx, http.MethodGet, "?key="+p.keyOf(claim, claim.Attempt), nil, &found)
	switch {
	case err != nil:
		return onceward.Unknown(), err
	case len(found) > 0:
		return onceward.Happened(found[0].ID), nil
	case claim.SinceEffectMayHaveBegun() > time.Duration(p.LagMs)*time.Millisecond+longestCharge:
		return onceward.DidNotHappen(), nil
	}
	return onceward.StillOpen(retryAfter), nil
}

// charge charges under a claim. Returns the charge's id.
func (p provider) charge(ctx context.Context, claim *onceward.Claim) (int, error) {
	status, answer, err := p.post(ctx, claim)
	switch {
	case status == http.StatusServiceUnavailable:
		return 0, &onceward.NoEffectError{Message: "The provider refused the charge."}
	case err == nil && answer.Status != "succeeded":
		return 0, &onceward.OutcomeUnknownError{Message: fmt.Sprintf("The charge is %s.", answer.Status)}
	}
	return answer.ID, err
}

// keyOf returns the key of an attempt's charge: its own where an earlier one's is cancelled.
func (p provider) keyOf(claim *onceward.Claim, attempt int) string {
	if p.Kind == "cancel" {
		return claim.DeriveKey(fmt.Sprintf("charge %d", attempt))
	}
	return claim.DeriveKey("charge")
}

func (p provider) post(ctx context.Context, claim *onceward.Claim) (int, charge, error) {
	var answer charge
	asked := charge{Operation: claim.Key, Key: p.keyOf(claim, claim.Attempt), Attempt: claim.Attempt, FencingToken: claim.FencingToken}
	status, err := p.ask(ctx, http.MethodPost, "", asked, &answer)
	return status, answer, err
}

// ask calls the provider, and decodes a JSON answer. Returns its status; 0 without one.
func (p provider) ask(ctx context.Context, method, path string, body, answer any) (int, error) {
	encoded, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequestWithContext(ctx, method, p.URL+"/charges"+path, bytes.NewReader(encoded))
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if answer == nil || response.ContentLength == 0 {
		return response.StatusCode, nil
	}
	return response.StatusCode, json.NewDecoder(response.Body).Decode(answer)
}
