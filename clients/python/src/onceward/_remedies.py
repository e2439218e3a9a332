"""What a developer does about an error, by its reason.

The cases of clients/conformance hold the texts to this.
"""

REMEDIES = {
    "INVALID_REQUEST": "Correct the fields that `violations` names. Do not retry.",
    "FINGERPRINT_MISMATCH": (
        "Find out why two requests have one key (fingerprints). Answer 422, or dead-letter the message."
    ),
    "CLAIM_SUPERSEDED": (
        "Stop: another holder has the operation. Look for blocked event loops and functions that "
        "outlive their lease."
    ),
    "KEY_TOO_OLD": (
        "Do not retry. Find out whether the effect happened, such as at the provider. If it did not, "
        "repeat it under a new key, with a new time (late retries)."
    ),
    "ALREADY_COMPLETED": (
        "Use the stored result: look the key up. Two programs that complete one claim have to share "
        "the result."
    ),
    "ALREADY_RELEASED": "Call `run` again; do not keep a claim's token after its release.",
    "RECORD_NOT_FOUND": (
        "Claim first. Behind a guard of HTTP the key has more parts than the header's: "
        "`POST:/charges:CALLER:KEY`. If it was claimed long ago, set a longer `key_retention`."
    ),
    "RESULT_TOO_LARGE": (
        "Return a smaller value, such as an id, or raise `max_result_bytes`. The operation is stored "
        "as done without its value."
    ),
    "RESPONSE_TOO_LARGE": ("Nothing: the client repeats the item alone. With plain RPCs, do the same."),
    "CREDENTIAL_MISSING": "Set `api_key` or `token`.",
    "CREDENTIAL_INVALID": (
        "Create a new API key, or renew the token; compare the address with the key's installation."
    ),
    "ROLE_DENIED": (
        "Use a credential with the role that the RPC needs: CALLER for `run`, TENANT_ADMIN for "
        "administration."
    ),
    "NAMESPACE_DENIED": "Use another namespace, or a credential that is valid for this one.",
    "TENANT_SUSPENDED": "Ask the operator of the service.",
    "DATABASE_UNAVAILABLE": (
        "Nothing: the client retries for `timeout_ms`. After that, choose as in outages."
    ),
    "OVERLOADED": (
        "Nothing: the client retries later, at another replica if there are several. If it persists, "
        "add replicas."
    ),
    "RECORD_CONTENDED": (
        "Nothing: the client retries. If it persists, too many callers use one key: check how keys are made."
    ),
    "SHUTTING_DOWN": "Nothing: the client repeats the call at another replica.",
    "DEADLINE_EXCEEDED": "Raise `timeout_ms`, or look for the delay in the service's metrics.",
    "CANCELLED": "Nothing: your program cancelled the call.",
    "INTERNAL": "Report it with the request id.",
    "ETAG_MISMATCH": ("Read the resource again, apply your change to it, and send the new etag."),
    "TENANT_NOT_FOUND": "Check the tenant's name: `onceward operator tenants list`.",
    "TENANT_EXISTS": ("Choose another name, or wait until the deleted tenant's records are removed."),
    "NAMESPACE_NOT_FOUND": (
        "Set a policy for the namespace first (`allow_missing`), or change the tenant's policy."
    ),
    "NAMESPACE_NOT_EMPTY": ("Wait until its records have expired and are deleted, or delete with `force`."),
    "API_KEY_NOT_FOUND": "Check the id: `onceward keys list`.",
    "RECORD_JOB_NOT_FOUND": "Check the id: finished jobs are kept for 90 days.",
    "QUOTA_RATE": (
        "Wait for `retry_delay_ms`. If it persists, ask the operator for a higher quota, or send "
        "fewer duplicates."
    ),
    "QUOTA_CONCURRENCY": (
        "Wait for `retry_delay_ms`. Use fewer calls that wait at once, or ask for a higher quota."
    ),
    "QUOTA_RECORDS": "Shorten `key_retention`, or ask the operator for a higher quota.",
    "QUOTA_BYTES": (
        "Store smaller results, shorten `result_retention`, or ask the operator for a higher quota."
    ),
    "ISSUER_UNAVAILABLE": ("Nothing: the client retries. If it persists, look at the issuer of your tokens."),
    "QUOTA_NAMESPACES": (
        "Delete policies of namespaces that you no longer use, or ask the operator for a higher quota."
    ),
    "QUOTA_RECORD_JOBS": "Wait until a background change has ended, or cancel one.",
    "RECORD_UNREADABLE": (
        "Ask the operator: a key of the encryption at rest is missing. Do not run the operation again."
    ),
    "RECORD_COUNT_MISMATCH": "Look at the matching records again, and confirm the new number.",
    "TENANT_MOVING": (
        "Nothing, if the client retries: the new installation answers. Otherwise repeat the call "
        "after the retry time."
    ),
    "NO_ANSWER": ("Correct the address or `tls`, and try `onceward doctor`. For an outage, see outages."),
    "CLOSED": "Close the client after the last call (shutdown).",
    "TOKEN_UNAVAILABLE": "Correct the function, or its issuer.",
    "LEASE_LOST": (
        "End the function. Look for a blocked event loop or a lost network; set a longer `lease_ms`."
    ),
    "IN_PROGRESS": "Retry after `retry_delay_ms`; answer 409 to an HTTP client.",
    "AMBIGUOUS": "Find out, and run with `accept_ambiguous` (crashes).",
    "RESULT_EXPIRED": ("Do not run it again. Set a longer `result_retention` if duplicates need the value."),
    "RESULT_LOST": "Do not run it again; ask the system that has the effect.",
    "RESULT_NOT_JSON": (
        "Return plain data, or pass a `codec`, the same one for every program that uses the key."
    ),
    "CODEC_FAILED": "Correct the codec.",
}
