package onceward

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/onceward/onceward/clients/go/onceward/internal/limits"
	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

const (
	// Metadata of a result without its value, which could not be stored; says for which reason.
	lostMetadata = "onceward-value-lost"
	// In place of a reason: the value was not to be stored (Operation.StoresMark).
	mark = "MARK"
	// Enough to recognise a failure whose details were too large.
	maxLostMessageBytes = 1024
	unknownFailure      = "The operation has a terminal failure."
)

// failure is a TerminalError as it is stored: the same in the client of every language.
type failure struct {
	Name    string `json:"name,omitempty"`
	Message string `json:"message"`
	Details any    `json:"details,omitempty"`
}

// encodeEffect returns a function's outcome as it is stored.
func encodeEffect(effect Effect, codec Codec) (*oncewardv1.Result, error) {
	kind := oncewardv1.Result_KIND_SUCCESS
	var encoded Encoded
	var err error
	if terminal, failed := effect.Err.(*TerminalError); failed {
		kind = oncewardv1.Result_KIND_FAILURE
		encoded, err = JSONCodec{}.Encode(failureOf(terminal))
	} else {
		encoded, err = codec.Encode(effect.Value)
	}
	if err != nil {
		return nil, err
	}
	if !utf8.ValidString(encoded.ContentType) || !hasTexts(encoded.Metadata) {
		return nil, &Error{Reason: ErrCodecFailed, Message: "The content type or the metadata of the result is not UTF-8."}
	}
	if size := len(encoded.Payload); size > limits.MaxResultBytes {
		message := fmt.Sprintf("The result is %d bytes; no policy takes more than %d.", size, limits.MaxResultBytes)
		return nil, &Error{Reason: ErrResultTooLarge, Message: message}
	}
	return &oncewardv1.Result{
		Kind: kind, Payload: encoded.Payload, ContentType: encoded.ContentType, Metadata: encoded.Metadata,
	}, nil
}

func hasTexts(metadata map[string]string) bool {
	for name, value := range metadata {
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return false
		}
	}
	return true
}

// encodeWithoutValue returns an outcome without its value or details: the operation must not run again.
func encodeWithoutValue(effect Effect, why *Error) (*oncewardv1.Result, error) {
	terminal, failed := effect.Err.(*TerminalError)
	if !failed {
		metadata := map[string]string{lostMetadata: string(why.Reason)}
		return &oncewardv1.Result{Kind: oncewardv1.Result_KIND_SUCCESS, Metadata: metadata}, nil
	}
	stored := failureOf(terminal)
	stored.Message, stored.Details = truncateUTF8(stored.Message, maxLostMessageBytes), nil
	payload, err := encodeJSON(stored)
	return &oncewardv1.Result{Kind: oncewardv1.Result_KIND_FAILURE, Payload: payload, ContentType: jsonType}, err
}

// marking is a Codec that stores of some values only that there was one; these are not encoded.
type marking interface{ StoresMark(value any) bool }

// markedResult returns what is stored in place of a value: only that the operation happened.
func markedResult() *oncewardv1.Result {
	return &oncewardv1.Result{Kind: oncewardv1.Result_KIND_SUCCESS, Metadata: map[string]string{lostMetadata: mark}}
}

func failureOf(terminal *TerminalError) failure {
	return failure{Name: terminal.Name, Message: terminal.Message, Details: terminal.Details}
}

// decodeValue reads the value of a successful result.
func decodeValue(result *oncewardv1.Result, codec Codec, into any) error {
	return codec.Decode(Encoded{result.GetPayload(), result.GetContentType(), result.GetMetadata()}, into)
}

// replay reads the value of a completed operation. Returns a TerminalError if it failed permanently, and a
// ResultUnavailableError if its value is not available.
func replay(completed *oncewardv1.Completed, codec Codec, claim ClaimRef, into any) error {
	result := completed.GetResult()
	if completed.GetResultExpired() || result == nil {
		return unavailable(ErrResultExpired, "Done before; the retention of its result has ended.", claim, nil)
	}
	if lost, isLost := result.GetMetadata()[lostMetadata]; isLost {
		why := "could not be stored: " + lost
		if lost == mark {
			why = "is not kept"
		}
		return unavailable(ErrResultLost, "Done before; its value "+why+".", claim, nil)
	}
	switch result.GetKind() {
	case oncewardv1.Result_KIND_FAILURE:
		return storedFailure(result)
	case oncewardv1.Result_KIND_SUCCESS:
	default:
		message := fmt.Sprintf("Done before; its result is of a kind that this client does not know: %v.", result.GetKind())
		return unavailable(ErrInternal, message, claim, nil)
	}
	if err := decodeValue(result, codec, into); err != nil {
		why := codecError(err)
		return unavailable(why.Reason, "Done before; its value can't be read: "+why.Message, claim, err)
	}
	return nil
}

func unavailable(reason Reason, message string, claim ClaimRef, cause error) *ResultUnavailableError {
	return &ResultUnavailableError{Err: &Error{Reason: reason, Message: message, Claim: &claim, isGone: true, cause: cause}}
}

// storedFailure returns a stored failure. One that another client stored may have any shape; then all of it becomes the details.
func storedFailure(result *oncewardv1.Result) *TerminalError {
	var stored any = result.GetPayload()
	if result.GetContentType() == jsonType {
		var parsed any
		if json.Unmarshal(result.GetPayload(), &parsed) == nil {
			stored = parsed
		}
	}
	members, _ := stored.(map[string]any)
	message, hasMessage := members["message"].(string)
	if !hasMessage {
		return &TerminalError{Message: unknownFailure, Details: stored}
	}
	name, _ := members["name"].(string)
	return &TerminalError{Message: message, Details: members["details"], Name: name}
}
