import { joinKey } from "../keys/keys.ts";

/** A request has no signature, or an invalid one. Answered with 401. */
export class WebhookSignatureError extends Error {
  override readonly name = "WebhookSignatureError";
}

/** Turns a provider's requests into events. */
export interface WebhookSource<Event> {
  /**
   * Returns the event if its signature is valid. Use the provider's own library for the cryptography.
   *
   * @param body the body as it was sent: the signature is of its text, not of its JSON.
   * @throws WebhookSignatureError for an invalid signature. Any other error is the receiver's (a missing secret, a
   *   certificate that can't be checked now): it is answered with 500, so that the provider sends the event again.
   */
  verify(body: string, headers: Headers): Event | Promise<Event>;
  /** Returns the event's own id, the same each time it is sent: its operation key. */
  key(event: Event, headers: Headers): string | undefined;
  /**
   * Returns when the event happened, the same each time it is sent, for keys that contain no time. Default: unknown.
   */
  createdAt?(event: Event, headers: Headers): Date | undefined;
}

/**
 * The source of webhooks after the specification [Standard Webhooks](https://www.standardwebhooks.com). The key is the header
 * `webhook-id`, which is signed and the same each time an event is sent; `webhook-timestamp` is the time of an attempt.
 *
 * @param verify checks and decodes, as `new Webhook(secret).verify(body, headers)` of `standardwebhooks`. The signature is invalid if
 *   this throws WebhookSignatureError or that library's WebhookVerificationError.
 */
export function standardWebhooks<Event = unknown>(
  verify: (body: string, headers: Record<string, string>) => Event | Promise<Event>,
): WebhookSource<Event> {
  return {
    async verify(body, headers) {
      headerOf(headers, "webhook-id");
      return await verified(() => verify(body, Object.fromEntries(headers)), isStandardSignatureError);
    },
    key: (_, headers) => headers.get("webhook-id") || undefined,
  };
}

/** A message of SNS, as it is posted to an endpoint of HTTP. */
export interface SnsMessage {
  /** `Notification`, or `SubscriptionConfirmation`, whose `SubscribeURL` your function visits. */
  readonly Type: string;
  readonly MessageId: string;
  readonly TopicArn: string;
  readonly Message: string;
  /** ISO 8601: when it was published. */
  readonly Timestamp: string;
  readonly SubscribeURL?: string;
}

/**
 * The source of AWS SNS over HTTP. The key is the topic and `MessageId`, the same in each retry of a delivery.
 *
 * @param validate rejects a message without a valid signature, as the `validate` of `sns-validator` does in a promise; any error of it
 *   means that the signature is invalid. Compare `TopicArn` with yours in it: every topic of AWS has valid signatures.
 */
export function snsMessages(validate: (message: SnsMessage) => unknown): WebhookSource<SnsMessage> {
  return {
    async verify(body) {
      const message = jsonOf<SnsMessage>(body);
      await verified(
        () => validate(message),
        () => true,
      );
      return message;
    },
    key: ({ TopicArn, MessageId }) => (MessageId ? joinKey(TopicArn, MessageId) : undefined),
    createdAt: ({ Timestamp }) => new Date(Timestamp),
  };
}

/** An event of CloudEvents 1.0. */
export interface CloudEvent<Data = unknown> {
  readonly id: string;
  readonly source: string;
  readonly type: string;
  /** ISO 8601. */
  readonly time?: string;
  readonly data?: Data;
}

/**
 * The source of CloudEvents 1.0 over HTTP, in structured or binary mode with JSON data. The key is `source` and `id`, which together name
 * an event (CloudEvents 1.0, 3.1.1).
 *
 * @param authenticate throws a WebhookSignatureError for a request that is not the producer's: CloudEvents has no signature.
 */
export function cloudEvents<Data = unknown>(
  authenticate: (body: string, headers: Headers) => unknown,
): WebhookSource<CloudEvent<Data>> {
  return {
    async verify(body, headers) {
      await authenticate(body, headers);
      const isStructured = headers.get("content-type")?.startsWith("application/cloudevents") === true;
      if (isStructured) return jsonOf<CloudEvent<Data>>(body);
      const attribute = (name: string) => headers.get(`ce-${name}`) ?? "";
      const [id, source, type, time] = ["id", "source", "type", "time"].map(attribute) as [
        string,
        ...string[],
      ];
      return {
        id,
        source,
        type,
        ...(time && { time }),
        ...(body && { data: jsonOf(body) }),
      } as CloudEvent<Data>;
    },
    key: ({ source, id }) => (source && id ? joinKey(source, id) : undefined),
    createdAt: ({ time }) => (time === undefined ? undefined : new Date(time)),
  };
}

/**
 * The source of Stripe's events. The key is the event's `id`, and its time is `created`: the same in retries, and when an event
 * is sent again from the dashboard.
 *
 * @param constructEvent checks the signature, as `stripe.webhooks.constructEventAsync(body, signature,
 *   endpointSecret)`. The signature is invalid if this throws WebhookSignatureError or Stripe's
 *   StripeSignatureVerificationError, which Stripe also throws for a blank secret.
 */
export function stripeEvents<Event extends { readonly id: string; readonly created: number }>(
  constructEvent: (body: string, signature: string) => Event | Promise<Event>,
): WebhookSource<Event> {
  return {
    async verify(body, headers) {
      const signature = headerOf(headers, "stripe-signature");
      return await verified(() => constructEvent(body, signature), isStripeSignatureError);
    },
    key: ({ id }) => id,
    createdAt: ({ created }) => new Date(created * 1000),
  };
}

/** A GitHub webhook, with the names that `@octokit/webhooks` uses. */
export interface GitHubEvent {
  /** The `X-GitHub-Delivery`. */
  readonly id: string;
  /** Such as "pull_request". */
  readonly name: string;
  readonly payload: unknown;
}

/**
 * The source of GitHub's webhooks. The key is `X-GitHub-Delivery`, which a redelivery repeats: a UUID, which contains
 * its time if its version is 1. GitHub does not sign that header, so only HTTPS protects it. For typed payloads use `githubEvents<EmitterWebhookEvent>`.
 *
 * @param verify checks the signature, as `webhooks.verify(body, signature)` of `@octokit/webhooks`.
 */
export function githubEvents<Event extends GitHubEvent = GitHubEvent>(
  verify: (body: string, signature: string) => boolean | Promise<boolean>,
): WebhookSource<Event> {
  return {
    async verify(body, headers) {
      const signature = headerOf(headers, "x-hub-signature-256");
      // Octokit's function throws for an empty body, which anyone can send.
      if (body === "" || !(await verify(body, signature))) {
        throw new WebhookSignatureError("The signature is invalid.");
      }
      const id = headers.get("x-github-delivery") ?? "";
      const name = headers.get("x-github-event") ?? "";
      return { id, name, payload: JSON.parse(body) } as Event;
    },
    key: ({ id }) => id || undefined,
  };
}

/**
 * The source of Apple's App Store Server Notifications (version 2). The key is `notificationUUID`,
 * which contains no time.
 *
 * @param verify checks and decodes, as `verifier.verifyAndDecodeNotification(signedPayload)` of
 *   `@apple/app-store-server-library`. The signature is invalid if this throws WebhookSignatureError or that library's
 *   VERIFICATION_FAILURE, unless a failed request caused it.
 */
export function appleNotifications<Notification extends { readonly notificationUUID?: string }>(
  verify: (signedPayload: string) => Notification | Promise<Notification>,
): WebhookSource<Notification> {
  return {
    async verify(body) {
      const signedPayload = signedPayloadOf(body);
      return await verified(() => verify(signedPayload), isAppleSignatureError);
    },
    key: ({ notificationUUID }) => notificationUUID,
  };
}

/** Verifies an event. @throws WebhookSignatureError for the library's errors of invalid signatures. */
async function verified<Event>(
  verify: () => Event | Promise<Event>,
  isSignatureError: (error: object) => boolean,
): Promise<Event> {
  try {
    return await verify();
  } catch (cause) {
    if (typeof cause !== "object" || cause === null || !isSignatureError(cause)) throw cause;
    const why = cause instanceof Error && cause.message !== "" ? `: ${cause.message}` : ".";
    throw new WebhookSignatureError(`The signature is invalid${why}`, { cause });
  }
}

function isStandardSignatureError(error: object): boolean {
  return "name" in error && error.name === "WebhookVerificationError";
}

function isStripeSignatureError(error: object): boolean {
  return "type" in error && error.type === "StripeSignatureVerificationError";
}

/** A value of `VerificationStatus`; the other values differ between the library's versions. */
const VERIFICATION_FAILURE = 1;

/**
 * The library also wraps errors of its requests for a certificate's status; these have a `code` such as ECONNREFUSED.
 */
function isAppleSignatureError(error: object): boolean {
  if (!("status" in error) || error.status !== VERIFICATION_FAILURE) return false;
  return !("cause" in error && error.cause instanceof Error && isRequestError(error.cause));
}

function isRequestError(error: Error): boolean {
  return error.name === "FetchError" || ("code" in error && /^(E[A-Z]+|UND_ERR_.+)$/.test(`${error.code}`));
}

/** @throws WebhookSignatureError for a body without one, which anybody can send. */
function signedPayloadOf(body: string): string {
  const { signedPayload } = jsonOf<{ readonly signedPayload?: unknown }>(body);
  if (typeof signedPayload === "string") return signedPayload;
  throw new WebhookSignatureError("The body has no signedPayload.");
}

/** @throws WebhookSignatureError for a body that is not a JSON object, which anybody can send. */
function jsonOf<Value>(body: string): Value {
  try {
    const value: unknown = JSON.parse(body);
    if (typeof value === "object" && value !== null) return value as Value;
  } catch (cause) {
    throw new WebhookSignatureError("The body is not JSON.", { cause });
  }
  throw new WebhookSignatureError("The body is not an object of JSON.");
}

/** @throws WebhookSignatureError if the header is missing or empty. */
function headerOf(headers: Headers, name: string): string {
  const value = headers.get(name);
  if (value === null || value === "") throw new WebhookSignatureError(`The request has no ${name}.`);
  return value;
}
