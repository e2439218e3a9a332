package onceward

// Reason says why a call was refused: a reason of the service's catalogue, which errors.proto explains, or one of the
// client's own. Reasons are errors, so that errors.Is(err, onceward.ErrFingerprintMismatch) asks for one. A reason of a newer
// service, which this client does not know, is passed on unchanged.
type Reason string

// Error returns the reason itself.
func (r Reason) Error() string { return string(r) }

// Remedy returns what a developer does about an error of this reason; "" for a reason of a newer service.
func (r Reason) Remedy() string { return remedies[r] }

// Reasons of the service.
const (
	// A field is malformed or over a limit: see Violations. Nothing happened.
	ErrInvalidRequest Reason = "INVALID_REQUEST"
	// The key was used for a different request. Nothing happened; a retry does not help.
	ErrFingerprintMismatch Reason = "FINGERPRINT_MISMATCH"
	// Another holder has taken the claim over. Nothing happened.
	ErrClaimSuperseded Reason = "CLAIM_SUPERSEDED"
	// The claim was completed before with a different result, which is kept.
	ErrAlreadyCompleted Reason = "ALREADY_COMPLETED"
	// The claim was released before: claim again.
	ErrAlreadyReleased Reason = "ALREADY_RELEASED"
	// There is no such record: the key was never claimed, or its retention has ended.
	ErrRecordNotFound Reason = "RECORD_NOT_FOUND"
	// The result is larger than the policy allows.
	ErrResultTooLarge Reason = "RESULT_TOO_LARGE"
	// The reply did not fit into the batch's reply: make the call outside a batch.
	ErrResponseTooLarge Reason = "RESPONSE_TOO_LARGE"
	// There was no API key.
	ErrCredentialMissing Reason = "CREDENTIAL_MISSING"
	// The API key is malformed, unknown, expired or revoked.
	ErrCredentialInvalid Reason = "CREDENTIAL_INVALID"
	// The API key's role may not make this call.
	ErrRoleDenied Reason = "ROLE_DENIED"
	// The API key is limited to other namespaces.
	ErrNamespaceDenied Reason = "NAMESPACE_DENIED"
	// The operator has suspended the tenant.
	ErrTenantSuspended Reason = "TENANT_SUSPENDED"
	// The service's database did not answer; a write may have happened. The client retries until Timeout.
	ErrDatabaseUnavailable Reason = "DATABASE_UNAVAILABLE"
	// The replica's queue was full. The client retries until Timeout.
	ErrOverloaded Reason = "OVERLOADED"
	// The record changed too often during the call. The client retries until Timeout.
	ErrRecordContended Reason = "RECORD_CONTENDED"
	// The replica is shutting down. The client retries, at another replica if there is one, until Timeout.
	ErrShuttingDown Reason = "SHUTTING_DOWN"
	// The call's deadline passed at the service; a write may have happened. The client retries until Timeout.
	ErrDeadlineExceeded Reason = "DEADLINE_EXCEEDED"
	// The caller cancelled the call; a write may have happened.
	ErrCancelled Reason = "CANCELLED"
	// A bug of the service; its log has the error under the request id.
	ErrInternal Reason = "INTERNAL"
	// Another caller changed the resource: read it again.
	ErrEtagMismatch Reason = "ETAG_MISMATCH"
	// There is no such tenant.
	ErrTenantNotFound Reason = "TENANT_NOT_FOUND"
	// A tenant of that name exists.
	ErrTenantExists Reason = "TENANT_EXISTS"
	// The namespace was never declared.
	ErrNamespaceNotFound Reason = "NAMESPACE_NOT_FOUND"
	// The namespace has records, or 1,000 ended ones that are not deleted yet.
	ErrNamespaceNotEmpty Reason = "NAMESPACE_NOT_EMPTY"
	// The tenant has no such API key.
	ErrAPIKeyNotFound Reason = "API_KEY_NOT_FOUND"
	// The tenant has no such record job.
	ErrRecordJobNotFound Reason = "RECORD_JOB_NOT_FOUND"
	// The tenant makes more operations a second than its quota. The client retries until Timeout.
	ErrQuotaRate Reason = "QUOTA_RATE"
	// The tenant has as many calls in flight as its quota. The client retries until Timeout.
	ErrQuotaConcurrency Reason = "QUOTA_CONCURRENCY"
	// The tenant has as many records as its quota. The client retries until Timeout.
	ErrQuotaRecords Reason = "QUOTA_RECORDS"
	// The tenant's results and checkpoints take as many bytes as its quota. The client retries until Timeout.
	ErrQuotaBytes Reason = "QUOTA_BYTES"
	// The token's signing key is unknown, and its issuer does not answer. The client retries until Timeout.
	ErrIssuerUnavailable Reason = "ISSUER_UNAVAILABLE"
	// The tenant has declared as many namespaces as its quota.
	ErrQuotaNamespaces Reason = "QUOTA_NAMESPACES"
	// The tenant has as many unfinished record jobs as a tenant may have.
	ErrQuotaRecordJobs Reason = "QUOTA_RECORD_JOBS"
	// The service cannot decrypt the record's result or checkpoint. An operator has to act; a retry does not help.
	ErrRecordUnreadable Reason = "RECORD_UNREADABLE"
	// The number of matching records is not the expected one: look at them again. Nothing happened.
	ErrRecordCountMismatch Reason = "RECORD_COUNT_MISMATCH"
	// The tenant is moving to another installation. The client retries until Timeout.
	ErrTenantMoving Reason = "TENANT_MOVING"
	// The key was created longer ago than the namespace accepts, and has no record. Nothing happened.
	ErrKeyTooOld Reason = "KEY_TOO_OLD"
)

// Reasons of the client.
const (
	// The network or a proxy answered, not Onceward: see the Code of the Error.
	ErrNoAnswer Reason = "NO_ANSWER"
	// The client is closed.
	ErrClosed Reason = "CLOSED"
	// The function Options.Token failed, with the error that Unwrap returns. The client retries until Timeout.
	ErrTokenUnavailable Reason = "TOKEN_UNAVAILABLE"
	// No heartbeat was answered before the lease expired: the cause of the function's context.
	ErrLeaseLost Reason = "LEASE_LOST"
	// Another holder has the claim: see InProgressError.
	ErrInProgress Reason = "IN_PROGRESS"
	// It is unknown whether an earlier attempt had its effect: see AmbiguousError.
	ErrAmbiguous Reason = "AMBIGUOUS"
	// The effect happened; the retention of its value has ended: see ResultUnavailableError.
	ErrResultExpired Reason = "RESULT_EXPIRED"
	// The effect happened; its value could not be stored: see ResultUnavailableError.
	ErrResultLost Reason = "RESULT_LOST"
	// The value has no JSON form, or the stored value is not JSON.
	ErrResultNotJSON Reason = "RESULT_NOT_JSON"
	// The codec returned the error that Unwrap returns.
	ErrCodecFailed Reason = "CODEC_FAILED"
)
