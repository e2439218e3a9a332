package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A lone surrogate has no form in UTF-8, and encoding/json reads it as U+FFFD. Lines are read with this text in its place, which
// becomes bytes that are not UTF-8.
const loneSurrogate = "(lone surrogate)"

var escapes = regexp.MustCompile(`\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\.`)

func markLoneSurrogates(line []byte) []byte {
	return escapes.ReplaceAllFunc(line, func(escape []byte) []byte {
		if len(escape) == 6 {
			return []byte(loneSurrogate)
		}
		return escape
	})
}

func restored(text string) string { return strings.ReplaceAll(text, loneSurrogate, "\xed\xa0\x80") }

// object is a JSON object in the order of its members, as a struct's are.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	text := []byte{'{'}
	for i, each := range o {
		if i > 0 {
			text = append(text, ',')
		}
		name, err := json.Marshal(each.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(each.value)
		if err != nil {
			return nil, err
		}
		text = append(append(append(text, name...), ':'), value...)
	}
	return append(text, '}'), nil
}

// plain returns the value with objects as maps.
func plain(value any) any {
	switch value := value.(type) {
	case object:
		members := make(map[string]any, len(value))
		for _, each := range value {
			members[each.name] = plain(each.value)
		}
		return members
	case []any:
		for i := range value {
			if nested, isNested := value[i].([]any); isNested && len(nested) == 1 {
				continue // Those of $nested are plain, and deep.
			}
			value[i] = plain(value[i])
		}
		return value
	default:
		return value
	}
}

// readValue returns the value that a case's JSON stands for.
func readValue(text json.RawMessage) (any, error) {
	trimmed := bytes.TrimSpace(text)
	switch {
	case len(trimmed) == 0:
		return nil, nil
	case trimmed[0] == '{':
		return readObject(trimmed)
	case trimmed[0] == '[':
		var elements []json.RawMessage
		if err := json.Unmarshal(trimmed, &elements); err != nil {
			return nil, err
		}
		values := make([]any, len(elements))
		for i, element := range elements {
			var err error
			if values[i], err = readValue(element); err != nil {
				return nil, err
			}
		}
		return values, nil
	default:
		var value any
		if err := json.Unmarshal(trimmed, &value); err != nil {
			return nil, err
		}
		if text, isText := value.(string); isText {
			return restored(text), nil
		}
		return value, nil
	}
}

func readObject(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	members := object{}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return nil, err
		}
		if tag := fmt.Sprint(name); strings.HasPrefix(tag, "$") {
			return readTagged(tag, raw)
		}
		value, err := readValue(raw)
		if err != nil {
			return nil, err
		}
		members = append(members, member{restored(fmt.Sprint(name)), value})
	}
	return members, nil
}

// readTagged returns a value that JSON does not have.
func readTagged(tag string, argument json.RawMessage) (any, error) {
	var text string
	_ = json.Unmarshal(argument, &text)
	var number float64
	_ = json.Unmarshal(argument, &number)
	switch tag {
	case "$date":
		return time.Parse(time.RFC3339Nano, text)
	case "$bytes":
		return hex.DecodeString(text)
	case "$double":
		bits, err := strconv.ParseUint(text, 16, 64)
		return math.Float64frombits(bits), err
	case "$integer":
		if small, err := strconv.ParseInt(text, 10, 64); err == nil {
			return small, nil
		}
		integer, _ := new(big.Int).SetString(text, 10)
		return integer, nil
	case "$text":
		return strings.Repeat("x", int(number)), nil
	case "$set", "$object":
		// A value without a JSON form.
		return make(chan int), nil
	case "$circular":
		circular := map[string]any{}
		circular["self"] = circular
		return circular, nil
	case "$nested":
		nested := []any{}
		for range int(number) - 1 {
			nested = []any{nested}
		}
		return nested, nil
	default:
		return nil, fmt.Errorf("there is no tag %q", tag)
	}
}

// writeValue returns a value as a case's JSON has it.
func writeValue(value any) any {
	if payload, isBytes := value.([]byte); isBytes {
		return map[string]any{"$bytes": hex.EncodeToString(payload)}
	}
	text, err := json.Marshal(value)
	if err != nil {
		return map[string]any{"$unwritable": true}
	}
	return json.RawMessage(text)
}

// writeState returns a checkpoint's state: JSON, or else its bytes.
func writeState(state []byte) any {
	if len(state) == 0 {
		return nil
	}
	if json.Valid(state) {
		return json.RawMessage(state)
	}
	return map[string]any{"$bytes": hex.EncodeToString(state)}
}
