package onceward

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf16"
)

// appendCanonical appends the canonical text (RFC 8785) of nil, bool, string, float64, []any and map[string]any.
func appendCanonical(text []byte, value any) []byte {
	switch value := value.(type) {
	case nil:
		return append(text, "null"...)
	case bool:
		return strconv.AppendBool(text, value)
	case float64:
		return appendNumber(text, value)
	case string:
		return appendText(text, value)
	case []any:
		text = append(text, '[')
		for i, element := range value {
			if i > 0 {
				text = append(text, ',')
			}
			text = appendCanonical(text, element)
		}
		return append(text, ']')
	case map[string]any:
		return appendMembers(text, value)
	default:
		panic(fmt.Sprintf("onceward: %T is not a plain value", value))
	}
}

func appendMembers(text []byte, members map[string]any) []byte {
	type member struct {
		name  string
		units []uint16
	}
	sorted := make([]member, 0, len(members))
	for name := range members {
		sorted = append(sorted, member{name, utf16.Encode([]rune(name))})
	}
	// By UTF-16 code units, as RFC 8785, section 3.2.3, sorts.
	slices.SortFunc(sorted, func(a, b member) int { return slices.Compare(a.units, b.units) })
	text = append(text, '{')
	for i, each := range sorted {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(appendText(text, each.name), ':')
		text = appendCanonical(text, members[each.name])
	}
	return append(text, '}')
}

const hexDigits = "0123456789abcdef"

// appendText appends a JSON text with the escapes that RFC 8785, section 3.2.2.2, requires, and no others.
func appendText(text []byte, value string) []byte {
	text = append(text, '"')
	for i := range len(value) {
		switch character := value[i]; character {
		case '"', '\\':
			text = append(text, '\\', character)
		case '\b':
			text = append(text, `\b`...)
		case '\t':
			text = append(text, `\t`...)
		case '\n':
			text = append(text, `\n`...)
		case '\f':
			text = append(text, `\f`...)
		case '\r':
			text = append(text, `\r`...)
		default:
			if character < ' ' {
				text = append(text, `\u00`...)
				text = append(text, hexDigits[character>>4], hexDigits[character&0xF])
				continue
			}
			text = append(text, character)
		}
	}
	return append(text, '"')
}

// appendNumber appends a finite number as ECMAScript's Number::toString does (ECMA-262, 6.1.6.1.20).
func appendNumber(text []byte, number float64) []byte {
	size := math.Abs(number)
	if size == 0 {
		return append(text, '0') // Also for a negative zero.
	}
	if size >= 1e-6 && size < 1e21 {
		return strconv.AppendFloat(text, number, 'f', -1, 64)
	}
	text = strconv.AppendFloat(text, number, 'e', -1, 64)
	// Go pads an exponent to two digits: e-07.
	if n := len(text); text[n-4] == 'e' && text[n-2] == '0' {
		text[n-2] = text[n-1]
		text = text[:n-1]
	}
	return text
}
