package onceward

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"google.golang.org/protobuf/proto"
)

const (
	jsonType  = "application/json"
	bytesType = "application/octet-stream"
)

// Encoded is a value as it is stored: opaque to the service, and replayed byte for byte.
type Encoded struct {
	Payload     []byte
	ContentType string
	Metadata    map[string]string
}

// Codec encodes a run's values for storage, and decodes them. Failures are JSON with every codec.
type Codec interface {
	// Encode returns the stored form. An error means that the value can't be stored.
	Encode(value any) (Encoded, error)
	// Decode reads a stored form into a pointer to the run's type. An error makes the value unavailable.
	Decode(stored Encoded, into any) error
}

// JSONCodec is the default codec: compact JSON, as encoding/json writes it, without escapes for HTML. Numbers are limited as those of
// Fingerprint, so that every language reads the same: pass a larger int64 as a text, such as by the tag `json:",string"`.
type JSONCodec struct{}

// Encode returns the value as JSON. Fails with ErrResultNotJSON.
func (JSONCodec) Encode(value any) (Encoded, error) {
	payload, err := encodeJSON(value)
	return Encoded{Payload: payload, ContentType: jsonType}, err
}

// Decode reads JSON, as json.Unmarshal does. Empty bytes are not a value. Fails with ErrResultNotJSON.
func (JSONCodec) Decode(stored Encoded, into any) error {
	if len(stored.Payload) > 0 && stored.ContentType != jsonType {
		return notJSON("it is stored as "+contentTypeText(stored), nil)
	}
	return decodeJSON(stored.Payload, into)
}

// BytesCodec is the codec of functions that return []byte: they are stored unchanged.
type BytesCodec struct{}

// Encode returns the bytes.
func (BytesCodec) Encode(value any) (Encoded, error) {
	payload, isBytes := value.([]byte)
	if !isBytes {
		return Encoded{}, fmt.Errorf("a %T is not a []byte", value)
	}
	return Encoded{Payload: payload, ContentType: bytesType}, nil
}

// Decode reads the bytes into a *[]byte or *any.
func (BytesCodec) Decode(stored Encoded, into any) error {
	if stored.ContentType != bytesType {
		return fmt.Errorf("the result is stored as %s, not as %s", contentTypeText(stored), bytesType)
	}
	switch into := into.(type) {
	case *[]byte:
		*into = stored.Payload
	case *any:
		*into = stored.Payload
	default:
		return fmt.Errorf("a %T holds no []byte", into)
	}
	return nil
}

// ProtoCodec is the codec of functions that return a message of Protocol Buffers, such as *pb.Charge: it is stored in the binary
// form.
type ProtoCodec struct{}

// Encode returns the message's bytes.
func (ProtoCodec) Encode(value any) (Encoded, error) {
	message, isMessage := value.(proto.Message)
	if !isMessage {
		return Encoded{}, fmt.Errorf("a %T is not a proto.Message", value)
	}
	payload, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
	return Encoded{Payload: payload, ContentType: protoType(message)}, err
}

// Decode reads the message into a pointer to a pointer to a message, such as **pb.Charge.
func (c ProtoCodec) Decode(stored Encoded, into any) error {
	target := reflect.ValueOf(into).Elem()
	if target.Kind() != reflect.Pointer {
		return fmt.Errorf("a %T holds no message", into)
	}
	made := reflect.New(target.Type().Elem())
	message, isMessage := made.Interface().(proto.Message)
	if !isMessage {
		return fmt.Errorf("a %T holds no message", into)
	}
	if err := c.DecodeMessage(stored, message); err != nil {
		return err
	}
	target.Set(made)
	return nil
}

// DecodeMessage reads the message into one of its type.
func (ProtoCodec) DecodeMessage(stored Encoded, into proto.Message) error {
	if expected := protoType(into); stored.ContentType != expected {
		return fmt.Errorf("the result is stored as %s, not as %s", contentTypeText(stored), expected)
	}
	return proto.Unmarshal(stored.Payload, into)
}

func protoType(message proto.Message) string {
	return "application/protobuf; proto=" + string(message.ProtoReflect().Descriptor().FullName())
}

func contentTypeText(stored Encoded) string {
	if stored.ContentType == "" {
		return "bytes"
	}
	return stored.ContentType
}

// encodeJSON returns a value as compact JSON with its characters as they are.
func encodeJSON(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, notJSON(err.Error(), err)
	}
	if _, refused := plainJSON(text.Bytes(), true, place{}); refused != nil {
		return nil, notJSON("it "+refused.text, nil)
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// decodeJSON reads JSON; no bytes leave the target as it is.
func decodeJSON(text []byte, into any) error {
	if len(text) == 0 {
		return nil
	}
	if _, refused := plainJSON(text, false, place{}); refused != nil {
		return notJSON("it "+refused.text, nil)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return notJSON(err.Error(), err)
	}
	return nil
}

func notJSON(detail string, cause error) *Error {
	return &Error{Reason: ErrResultNotJSON, Message: "The value has no JSON form: " + detail, cause: cause}
}

// codecError returns a codec's error as an Error: its own, or ErrCodecFailed.
func codecError(cause error) *Error {
	var own *Error
	if errors.As(cause, &own) {
		return own
	}
	return &Error{Reason: ErrCodecFailed, Message: cause.Error(), cause: cause}
}
