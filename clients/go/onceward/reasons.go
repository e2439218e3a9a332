package onceward

import (
	"regexp"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

// Reason says why a call was refused: a reason of the service's catalogue, which errors.proto explains, or one of the
// client's own. Reasons are errors, so that errors.Is(err, onceward.ErrFingerprintMismatch) asks for one. A reason of a newer
// service, which this client does not know, is passed on unchanged.
type Reason string

// Error returns the reason itself.
func (r Reason) Error() string { return string(r) }

// Remedy returns what a developer does about an error of this reason; "" for a reason of a newer service.
func (r Reason) Remedy() string {
	remedy, _ := r.option(oncewardv1.E_Remedy).(string)
	text := placeholder.ReplaceAllStringFunc(remedy, func(name string) string {
		return goName(strings.Trim(name, "{}"))
	})
	return link.ReplaceAllString(text, "$1")
}

// Facts returns what errors.proto says of the reason; nil for a reason of a newer service.
func (r Reason) Facts() *oncewardv1.ReasonFacts {
	facts, _ := r.option(oncewardv1.E_Reason).(*oncewardv1.ReasonFacts)
	return facts
}

// option returns an option of the reason in errors.proto; nil for a reason of a newer service.
func (r Reason) option(extension protoreflect.ExtensionType) any {
	value := oncewardv1.ErrorReason(0).Descriptor().Values().ByName(protoreflect.Name(reasonPrefix + string(r)))
	if value == nil {
		value = oncewardv1.ClientReason(0).Descriptor().Values().ByName(protoreflect.Name("CLIENT_REASON_" + string(r)))
	}
	if value == nil {
		return nil
	}
	return proto.GetExtension(value.Options(), extension)
}

var (
	placeholder = regexp.MustCompile(`\{\w+\}`)
	link        = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	initialisms = strings.NewReplacer("Api", "API", "Tls", "TLS")
)

// goName returns the Go name of an option or a field, such as RetryDelay for retry_delay_ms.
func goName(name string) string {
	words := strings.Split(strings.TrimSuffix(name, "_ms"), "_")
	for i, word := range words {
		words[i] = strings.ToUpper(word[:1]) + word[1:]
	}
	return initialisms.Replace(strings.Join(words, ""))
}
