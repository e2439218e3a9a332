package onceward

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// textViolations returns the violations of a text: its length in bytes, and forbidden characters.
func textViolations(field, value string, minBytes, maxBytes int) []Violation {
	switch {
	case len(value) < minBytes || len(value) > maxBytes:
		return []Violation{{field, fmt.Sprintf("must be %d-%d bytes of UTF-8, is %d", minBytes, maxBytes, len(value))}}
	case strings.ContainsFunc(value, unicode.IsControl):
		return []Violation{{field, "must not contain control characters"}}
	case !utf8.ValidString(value):
		return []Violation{{field, "must be well-formed UTF-8"}}
	default:
		return nil
	}
}

// printable returns a text with U+FFFD for characters that control a terminal, or show text in another order, but line breaks and
// tabs: owners and messages of others are in it.
func printable(text string) string {
	return strings.Map(func(character rune) rune {
		switch {
		case character == '\n', character == '\t':
			return character
		case unicode.IsControl(character), unicode.Is(unicode.Bidi_Control, character), character == '\u2028', character == '\u2029':
			return utf8.RuneError
		default:
			return character
		}
	}, text)
}

// truncateUTF8 returns the longest well-formed prefix of whole characters with at most so many bytes.
func truncateUTF8(text string, maxBytes int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= maxBytes {
		return text
	}
	for maxBytes > 0 && !utf8.RuneStart(text[maxBytes]) {
		maxBytes--
	}
	return text[:maxBytes]
}
