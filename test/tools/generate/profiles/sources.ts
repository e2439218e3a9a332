import type { HttpProfile } from "@onceward/client/http";

/** A row of the guide's table: a property of every profile. */
export const ROWS = {
  key: "form of the key",
  methods: "methods that are guarded",
  scope: "a key counts per caller and",
  missing: "no key",
  keyReused: "the key with another request",
  compares: "must be the same in each attempt",
  inProgress: "the first request is in progress",
  replayed: "mark of a replay",
  echoes: "`Idempotency-Key` in responses",
  serverErrors: "responses of 5xx",
} as const;

export type Row = keyof typeof ROWS;

const DRAFT = "https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header-07#section-";
const draft = (section: string) => `[${section}](${DRAFT}${section})`;
const stripe = (page: string) => `[${page}](https://docs.stripe.com/${page})`;
const ACP =
  "https://github.com/agentic-commerce-protocol/agentic-commerce-protocol/blob/c2afc863b46b6bb64fbc2be969bff25ee6eab652/rfcs/rfc.agentic_checkout.md";
const acp = (section: string) => `[§${section}](${ACP})`;
const UCP =
  "https://github.com/Universal-Commerce-Protocol/ucp/blob/fdcf8934d1b6bfaf54d4d80e66db00f2ba67fad1";
const ucpHeaders = `[Specific Header Requirements](${UCP}/docs/specification/shopping/checkout/rest.md)`;
const ucpStatuses = `[Status Codes](${UCP}/docs/specification/shopping/checkout/rest.md)`;
const ucpReplay = `[Replay Protection](${UCP}/docs/specification/signatures.md)`;
const UNSPECIFIED = "not prescribed";

/** Where each value of the table comes from; the words are ours. The profile `onceward` is our own. */
export const SOURCES: Readonly<Record<Exclude<HttpProfile, "onceward">, Readonly<Record<Row, string>>>> = {
  ietf: {
    key: `${draft("2.1")}: a String of structured fields`,
    methods: `${draft("1")}: methods that are not idempotent, such as POST and PATCH`,
    scope: `${draft("2.2")}: the resource's owner defines it`,
    missing: `${draft("2.7")}: SHOULD be 400, with a link to documentation`,
    keyReused: `${draft("2.7")}: SHOULD be 422, with a link to documentation`,
    compares: `${draft("2.4")}: one of several ways, such as a checksum of the payload`,
    inProgress: `${draft("2.7")}: SHOULD be 409`,
    replayed: UNSPECIFIED,
    echoes: UNSPECIFIED,
    serverErrors: `${draft("2.7")}: left to the resource's documentation`,
  },
  stripe: {
    key: `${stripe("api/idempotent_requests")}: up to 255 characters`,
    methods: `${stripe("api/idempotent_requests")}: all POST requests accept keys`,
    scope:
      "[API error types](https://stripe.dev/stripe-terminal-android/external/com.stripe.stripeterminal.external.api/-api-error-type/-i-d-e-m-p-o-t-e-n-c-y_-e-r-r-o-r/index.html): an error also for another endpoint",
    missing: `${stripe("api/idempotent_requests")}: keys are optional`,
    keyReused:
      "[stripe-ruby#503](https://github.com/stripe/stripe-ruby/issues/503): 400; type `idempotency_error` as in the scope's source",
    compares: `${stripe("api/idempotent_requests")}: incoming parameters`,
    inProgress:
      "[woocommerce-gateway-stripe#503](https://github.com/woocommerce/woocommerce-gateway-stripe/pull/503): 409 of type `invalid_request_error`; the code is in [error codes](https://docs.stripe.com/error-codes)",
    replayed: `${stripe("error-low-level")}: \`Idempotent-Replayed: true\``,
    echoes: UNSPECIFIED,
    serverErrors: `${stripe("api/idempotent_requests")}: v2 retries failed work; v1, which replays a 500, is not imitated`,
  },
  acp: {
    key: `${acp("6.1")}: an opaque string of at most 255 characters`,
    methods: `${acp("6.1")}: every POST`,
    scope: `${acp("6.1")}: the authenticated identity and the endpoint's path`,
    missing: `${acp("6.1")}: MUST be 400 \`idempotency_key_required\``,
    keyReused: `${acp("6.4")}: 422 \`idempotency_conflict\``,
    compares: `${acp("6.2")}: semantic JSON equality of the body only`,
    inProgress: `${acp("6.4")}: 409 \`idempotency_in_flight\`, SHOULD have Retry-After`,
    replayed: `${acp("6.3")}: SHOULD have \`Idempotent-Replayed: true\``,
    echoes: `[Response Headers](${ACP}): on all POST responses`,
    serverErrors: `${acp("6.5")}: MUST NOT be cached; the retry is a fresh request`,
  },
  ucp: {
    key: `${ucpReplay}: at least 128 bits of entropy, in no particular form`,
    methods: `${ucpHeaders}: operations that modify state; in REST these are POST and PUT`,
    scope: `${ucpReplay}: the client and the type of the operation`,
    missing: `${ucpHeaders}: operations SHOULD support keys, "when provided"`,
    keyReused: `${ucpHeaders} and [its conformance tests](https://github.com/Universal-Commerce-Protocol/conformance/blob/fdced3ad4d92637a55de8f4b71a6dead5a2621c0/idempotency_test.py): MUST be 409; the body has \`code\` and \`content\``,
    compares: `${ucpReplay}: MUST be the SHA-256 of the body's bytes`,
    inProgress: `${ucpStatuses}: 409 for a conflict`,
    replayed: UNSPECIFIED,
    echoes: UNSPECIFIED,
    serverErrors: UNSPECIFIED,
  },
};
