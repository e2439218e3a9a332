// Package limits reads the limits of the contract that the client checks before it sends a request, to name the mistake.
package limits

import (
	"regexp"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	oncewardv1 "github.com/onceward/onceward/clients/go/onceward/v1"
)

var (
	claim      = (*oncewardv1.ClaimRequest)(nil)
	checkpoint = (*oncewardv1.Checkpoint)(nil)
	policy     = (*oncewardv1.Policy)(nil)
	record     = (*oncewardv1.Record)(nil)
	result     = (*oncewardv1.Result)(nil)

	namespace = factsOf(record, "namespace")
	metadata  = factsOf(result, "metadata")
	lease     = factsOf(policy, "default_lease")
)

// The limits, in bytes where nothing else is said.
var (
	MaxKeyBytes             = maxOf(record, "key")
	MaxOwnerBytes           = maxOf(record, "owner")
	MaxClaimIDBytes         = maxOf(claim, "claim_id")
	FingerprintBytes        = maxOf(record, "fingerprint")
	MaxReleaseReasonBytes   = maxOf(record, "release_reason")
	MaxCheckpointNameBytes  = maxOf(checkpoint, "name")
	MaxCheckpointStateBytes = maxOf(checkpoint, "state")
	// The largest result of any policy. Most policies allow less, which only the service knows.
	MaxResultBytes        = maxOf(result, "payload")
	MaxContentTypeBytes   = maxOf(result, "content_type")
	MaxMetadataEntries    = int(metadata.GetMax())
	MaxMetadataNameBytes  = int(metadata.GetKeys().GetMax())
	MaxMetadataValueBytes = int(metadata.GetValues().GetMax())
	// All of the metadata as JSON.
	MaxMetadataBytes = int(metadata.GetMaxJsonBytes())
	// The lease of a run that leaves it to a policy that does not set one.
	DefaultLease = must(time.ParseDuration(lease.GetDefault()))
	MinLease     = milliseconds(lease.GetMin())
	MaxLease     = milliseconds(lease.GetMax())
	// Of a policy that does not set them.
	DefaultMaxLease       = must(time.ParseDuration(factsOf(policy, "max_lease").GetDefault()))
	DefaultKeyRetention   = must(time.ParseDuration(factsOf(policy, "key_retention").GetDefault()))
	DefaultMaxResultBytes = must(strconv.Atoi(factsOf(policy, "max_result_bytes").GetDefault()))
	// How far a key's time may be ahead of the service's clock.
	MaxKeyAhead = milliseconds(factsOf(claim, "key_created_at").GetMax())
	// The longest wait of one Claim; a longer wait takes several calls.
	MaxWait         = milliseconds(factsOf(claim, "wait").GetMax())
	MaxBatchItems   = maxOf((*oncewardv1.BatchRequest)(nil), "items")
	MaxMessageBytes = int(messageFactsOf((*oncewardv1.BatchRequest)(nil)).GetMaxBytes())

	NamespacePattern = regexp.MustCompile("^(?:" + namespace.GetPattern() + ")$")
	// NamespacePattern in words, as the service's errors have it.
	NamespaceRule = namespace.GetRule()
)

func factsOf(message proto.Message, field protoreflect.Name) *oncewardv1.FieldFacts {
	options := message.ProtoReflect().Descriptor().Fields().ByName(field).Options()
	return proto.GetExtension(options, oncewardv1.E_Field).(*oncewardv1.FieldFacts)
}

func messageFactsOf(message proto.Message) *oncewardv1.MessageFacts {
	return proto.GetExtension(message.ProtoReflect().Descriptor().Options(), oncewardv1.E_Message).(*oncewardv1.MessageFacts)
}

func maxOf(message proto.Message, field protoreflect.Name) int {
	return int(factsOf(message, field).GetMax())
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func milliseconds(count int64) time.Duration { return time.Duration(count) * time.Millisecond }
