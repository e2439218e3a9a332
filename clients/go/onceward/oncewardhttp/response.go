package oncewardhttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/onceward/onceward/clients/go/onceward"
	"github.com/onceward/onceward/clients/go/onceward/internal/limits"
)

// response is a whole response as it is stored: as the guards of the other languages store it, so that they replay each other's.
type response struct {
	status int
	// Names are in lower case.
	header map[string]string
	body   []byte
}

const (
	statusMetadata = "http-status"
	headerMetadata = "http-header-"
	contentType    = "content-type"
)

// responseCodec stores the body's bytes unchanged, its content type as the result's, and the status and other headers as metadata.
type responseCodec struct{}

func (responseCodec) Encode(value any) (onceward.Encoded, error) {
	whole := value.(*response)
	if whole.body == nil {
		return onceward.Encoded{}, tooLarge("The response", limits.MaxResultBytes)
	}
	if len(whole.header[contentType]) > limits.MaxContentTypeBytes {
		return onceward.Encoded{}, tooLarge(contentType, limits.MaxContentTypeBytes)
	}
	metadata := map[string]string{statusMetadata: strconv.Itoa(whole.status)}
	for name, value := range whole.header {
		switch stored := headerMetadata + name; {
		case name == contentType:
		case len(value) > limits.MaxMetadataValueBytes:
			return onceward.Encoded{}, tooLarge(name, limits.MaxMetadataValueBytes)
		case len(stored) > limits.MaxMetadataNameBytes:
			return onceward.Encoded{}, tooLarge(stored, limits.MaxMetadataNameBytes)
		default:
			metadata[stored] = value
		}
	}
	if len(metadata) > limits.MaxMetadataEntries {
		return onceward.Encoded{}, tooLarge("The number of headers to store", limits.MaxMetadataEntries)
	}
	text, err := json.Marshal(metadata)
	if err != nil {
		return onceward.Encoded{}, err
	}
	if len(text) > limits.MaxMetadataBytes {
		return onceward.Encoded{}, tooLarge("The headers to store, together,", limits.MaxMetadataBytes)
	}
	return onceward.Encoded{Payload: whole.body, ContentType: whole.header[contentType], Metadata: metadata}, nil
}

func (responseCodec) Decode(stored onceward.Encoded, into any) error {
	status, err := strconv.Atoi(stored.Metadata[statusMetadata])
	if err != nil || status < 200 || status > 599 {
		return errors.New("the stored result is not an HTTP response")
	}
	header := map[string]string{}
	if stored.ContentType != "" {
		header[contentType] = stored.ContentType
	}
	for name, value := range stored.Metadata {
		if name, isHeader := strings.CutPrefix(name, headerMetadata); isHeader {
			header[name] = value
		}
	}
	*into.(**response) = &response{status, header, stored.Payload}
	return nil
}

// markCodec stores of a response below 400 only that it was sent. A refusal has no secret, and was not carried out.
type markCodec struct{ responseCodec }

func (markCodec) StoresMark(value any) bool { return value.(*response).status < http.StatusBadRequest }

func tooLarge(what string, limit int) error {
	return &onceward.Error{
		Reason: onceward.ErrResultTooLarge, Message: fmt.Sprintf("%s is larger than %d; no policy takes more.", what, limit),
	}
}

// replay sends a stored response, and only the allowed headers: any program with a key of the tenant may have written the record.
func (r *response) replay(w http.ResponseWriter, policy *policy) {
	for name, value := range r.header {
		if policy.replayed[name] {
			w.Header().Set(name, value)
		}
	}
	if policy.wire.replayed != "" {
		w.Header().Set(policy.wire.replayed, "true")
	}
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body) // The client may have left.
}

// Response is a handler's whole response.
type Response struct {
	Status int
	Header http.Header
	// Nil if the response is larger than 1 MiB, and was streamed. Must not be changed.
	Body []byte
}

// resolve returns what finds out about an earlier attempt at a request; nil if the options have none.
func (p *policy) resolve(r *http.Request) func(context.Context, *onceward.Claim) (onceward.Resolution, error) {
	if p.Resolve == nil {
		return nil
	}
	return func(ctx context.Context, claim *onceward.Claim) (onceward.Resolution, error) {
		found, err := p.Resolve(r.WithContext(ctx), claim)
		value, happened := found.Value()
		if !happened || err != nil {
			return found, err
		}
		sent, isResponse := value.(Response)
		if !isResponse {
			return found, fmt.Errorf("oncewardhttp: what happened must be a Response, is a %T", value)
		}
		body := sent.Body
		if body == nil {
			body = []byte{}
		}
		return onceward.Happened(&response{sent.Status, p.storedHeader(sent.Header), body}), nil
	}
}

// storedHeader returns the headers that are replayed.
func (p *policy) storedHeader(sent http.Header) map[string]string {
	header := map[string]string{}
	for name, values := range sent {
		if name = strings.ToLower(name); p.replayed[name] {
			header[name] = strings.Join(values, ", ")
		}
	}
	return header
}

// Verdict is what a response says about its operation.
type Verdict int

const (
	// Unknown leaves the claim to its lease and the namespace's policy: the request may have had its effect.
	Unknown Verdict = iota
	// Store stores the response, and replays it to every repeat: it is the operation's outcome.
	Store
	// Release releases the claim, so that the next attempt runs: there was no effect. After an interruption, such as a lost lease,
	// it is Unknown.
	Release
)

// verdictOf is the default of Options.Stores.
func verdictOf(response Response) Verdict {
	switch status := response.Status; status {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		// About the attempt (who made it, when), not about the operation.
		return Release
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		return Unknown
	case http.StatusServiceUnavailable:
		if response.Header.Get("Retry-After") == "" {
			return Unknown
		}
		return Release
	default:
		if status < http.StatusInternalServerError {
			return Store
		}
		return Release
	}
}

// recorder keeps a handler's response until it is stored. One that is too large to be stored is streamed.
type recorder struct {
	to       http.ResponseWriter
	header   http.Header
	isHead   bool
	status   int
	body     []byte
	written  int64
	streamed bool
	sent     http.Header // The headers at the time of WriteHeader.
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) {
	if status < 200 {
		return // Informational: the response is still to come.
	}
	if r.status == 0 {
		r.status, r.sent = status, r.header.Clone()
	}
}

func (r *recorder) Write(part []byte) (int, error) {
	// As net/http does: the type of coded bytes is not that of the response.
	if r.status == 0 && r.header.Get("Content-Type") == "" && r.header.Get("Content-Encoding") == "" {
		r.header.Set("Content-Type", http.DetectContentType(part))
	}
	r.WriteHeader(http.StatusOK)
	if r.status == http.StatusNoContent || r.status == http.StatusNotModified {
		return 0, http.ErrBodyNotAllowed
	}
	r.written += int64(len(part))
	switch {
	case r.isHead:
	case r.streamed:
		// A client that has left does not end the handler.
		_, _ = r.to.Write(part)
	default:
		r.body = append(r.body, part...)
		if len(r.body) > limits.MaxResultBytes {
			r.send()
			r.streamed, r.body = true, nil
		}
	}
	return len(part), nil
}

// mark is the link (RFC 6903, 6) that marks a response in every format as the refusal of a guard.
var mark = regexp.MustCompile(`<(urn:onceward:problem:[a-z-]+)>; rel="type"`)

// outcome returns the part of the response that is stored; an error for a response that is not. What another guard refuses, within
// the handler or in a service whose response the handler passes on, is not this operation's outcome.
func (r *recorder) outcome(ctx context.Context, policy *policy) (*response, error) {
	r.WriteHeader(http.StatusOK)
	refusal := mark.FindStringSubmatch(strings.Join(r.sent.Values("Link"), ", "))
	if refusal != nil && ProblemType(refusal[1]) == Ambiguous {
		return nil, &onceward.OutcomeUnknownError{Cause: errors.New("another guard does not know whether the request had its effect")}
	}
	if r.isBroken() {
		return nil, &onceward.OutcomeUnknownError{Message: "the response has not the length of its Content-Length"}
	}
	verdict := Release
	if refusal == nil {
		verdict = policy.Stores(Response{r.status, r.sent.Clone(), r.body})
	}
	why := fmt.Errorf("HTTP %d", r.status)
	switch {
	case verdict == Unknown:
		return nil, &onceward.OutcomeUnknownError{Cause: why}
	case verdict == Release && r.status < http.StatusInternalServerError && ctx.Err() == nil:
		return nil, &onceward.NoEffectError{Cause: why}
	case verdict == Release:
		return nil, why
	}
	whole := &response{status: r.status, header: policy.storedHeader(r.sent)}
	if !r.streamed {
		whole.body = append([]byte{}, r.body...)
	}
	return whole, nil
}

// isBroken returns whether the handler wrote another length than it had announced, so that the client can't read the response.
func (r *recorder) isBroken() bool {
	announced, err := strconv.ParseInt(r.sent.Get("Content-Length"), 10, 64)
	hasBody := !r.isHead && r.status != http.StatusNoContent && r.status != http.StatusNotModified
	return err == nil && hasBody && r.written != announced
}

// send sends the response, unless it was streamed.
func (r *recorder) send() {
	if r.streamed {
		return
	}
	for name, values := range r.sent {
		r.to.Header()[name] = values
	}
	r.to.WriteHeader(r.status)
	_, _ = r.to.Write(r.body) // The client may have left.
}
