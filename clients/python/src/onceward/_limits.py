"""The limits of idempotency.proto that the client checks before it sends a request, to name the mistake."""

import re

MAX_KEY_BYTES = 255
NAMESPACE_PATTERN = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
#: NAMESPACE_PATTERN in words, as the service's errors have it.
NAMESPACE_RULE = (
    "must be 1-63 lower-case letters, digits, dots, underscores or hyphens, and begin with a letter or digit"
)
FINGERPRINT_BYTES = 32
MAX_OWNER_BYTES = 128
MAX_RELEASE_REASON_BYTES = 1024
MAX_CHECKPOINT_NAME_BYTES = 128
MAX_CHECKPOINT_STATE_BYTES = 16 * 1024
#: The largest result of any policy. Most policies allow less, which only the service knows.
MAX_RESULT_BYTES = 1024 * 1024
MIN_LEASE_MS = 1000
MAX_LEASE_MS = 24 * 3_600_000
#: The longest wait of one Claim; a longer wait takes several calls.
MAX_WAIT_MS = 60_000
MAX_BATCH_ITEMS = 1000
#: Of a request, as the service takes it.
MAX_MESSAGE_BYTES = 4 * 1024 * 1024
