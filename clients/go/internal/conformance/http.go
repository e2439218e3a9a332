package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"

	"google.golang.org/grpc"

	"github.com/onceward/onceward/clients/go/onceward"
	"github.com/onceward/onceward/clients/go/onceward/oncewardhttp"
	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

// httpCase is a request, as which operation a guard would claim it.
type httpCase struct {
	Method  string            `json:"method"`
	Route   string            `json:"route"`
	Path    string            `json:"path"`
	Query   string            `json:"query"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	BodyHex string            `json:"bodyHex"`
	Options struct {
		Caller    string `json:"caller"`
		Operation string `json:"operation"`
		Header    string `json:"header"`
		Profile   string `json:"profile"`
	} `json:"options"`
}

// claims is a connection that claims nothing, and remembers what would be claimed.
type claims struct {
	grpc.ClientConnInterface
	claimed *oncewardv1.ClaimRequest
}

func (c *claims) Invoke(_ context.Context, _ string, request, _ any, _ ...grpc.CallOption) error {
	c.claimed, _ = request.(*oncewardv1.ClaimRequest)
	return &onceward.Error{Reason: onceward.ErrRoleDenied, Message: "Nothing is claimed."}
}

// performHTTP returns the operation that a guard claims for a request; or the problem that refused it, or that it is not guarded.
func performHTTP(line []byte) (any, error) {
	var given httpCase
	if err := json.Unmarshal(line, &given); err != nil {
		return nil, err
	}
	connection := &claims{}
	client, err := onceward.NewWithConn(connection, onceward.Options{})
	if err != nil {
		return nil, err
	}
	guard, err := oncewardhttp.New(client, oncewardhttp.Options{
		Namespace: "charges", Caller: func(*http.Request) string { return given.Options.Caller },
		Operation: given.Options.Operation, Header: given.Options.Header, Profile: oncewardhttp.Profile(given.Options.Profile),
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		return nil, err
	}
	body := given.Body
	if given.BodyHex != "" {
		decoded, err := hex.DecodeString(given.BodyHex)
		if err != nil {
			return nil, err
		}
		body = string(decoded)
	}
	if given.Route == "" {
		given.Route = given.Path
	}
	request := httptest.NewRequest(given.Method, given.Path+given.Query, strings.NewReader(body))
	for name, value := range given.Headers {
		request.Header.Set(name, value)
	}
	mux := http.NewServeMux()
	mux.Handle(given.Route, guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	})))
	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, request)
	if claimed := connection.claimed; claimed != nil {
		return report{"key": claimed.GetKey(), "fingerprint": hex.EncodeToString(claimed.GetFingerprint())}, nil
	}
	if answer.Code == http.StatusNoContent {
		return report{"unguarded": true}, nil
	}
	var problem struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &problem); err != nil {
		return nil, err
	}
	return report{"problem": strings.TrimPrefix(problem.Type, "urn:onceward:problem:"), "status": answer.Code}, nil
}
