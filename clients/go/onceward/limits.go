package onceward

import (
	"regexp"
	"time"
)

// The limits of idempotency.proto that the client checks before it sends a request, to name the mistake.
const (
	maxKeyBytes             = 255
	fingerprintBytes        = 32
	maxOwnerBytes           = 128
	maxReleaseReasonBytes   = 1024
	maxCheckpointNameBytes  = 128
	maxCheckpointStateBytes = 16 << 10
	// The largest result of any policy. Most policies allow less, which only the service knows.
	maxResultBytes = 1 << 20
	minLease       = time.Second
	maxLease       = 24 * time.Hour
	// The longest wait of one Claim; a longer wait takes several calls.
	maxWait         = time.Minute
	maxBatchItems   = 1000
	maxMessageBytes = 4 << 20
)

// namespaceRule is namespacePattern in words, as the service's errors have it.
const namespaceRule = "must be 1-63 lower-case letters, digits, dots, underscores or hyphens, and begin with a letter or digit"

var namespacePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)
