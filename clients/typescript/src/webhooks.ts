import { createEffectHandler } from "./consumers/handle.ts";
import { withMessageTime } from "./consumers/message-time.ts";
import type { ConsumerOptions } from "./consumers/options.ts";
import { WebhookSignatureError, type WebhookSource } from "./consumers/webhook-sources.ts";
import { checkFunction } from "./errors/violations.ts";
import type { Claim } from "./run/claim.ts";
import type { Runner } from "./run/client.ts";
import { warn } from "./run/events.ts";
import { checkOptionalFunction } from "./run/guarded-run.ts";

export type { Delivery } from "./consumers/delivery.ts";
export type { ConsumerOptions } from "./consumers/options.ts";
export {
  appleNotifications,
  type CloudEvent,
  cloudEvents,
  type GitHubEvent,
  githubEvents,
  type SnsMessage,
  snsMessages,
  standardWebhooks,
  stripeEvents,
  WebhookSignatureError,
  type WebhookSource,
} from "./consumers/webhook-sources.ts";

interface Received<Event> {
  readonly event: Event;
  readonly headers: Headers;
}

/** {@link ConsumerOptions} for events, and their source. */
export interface WebhookOptions<Event>
  extends Omit<ConsumerOptions<Event>, "key" | "keyCreatedAt" | "fingerprint"> {
  /** Returns what the event's key belongs to, as {@link ConsumerOptions} describe it. Default: not compared. */
  readonly fingerprint?: ((event: Event, headers: Headers) => unknown) | undefined;
  /** Checks the signature and returns the event's key: a provider's source, or your own. */
  readonly source: WebhookSource<Event>;
  /**
   * Called for each request that was answered without an event, because `source.verify` threw. Must not throw.
   * Default: each error of the receiver and the first invalid signature are warnings of the process
   * (ONCEWARD_WEBHOOK_REJECTED).
   */
  readonly onRejected?: ((rejection: WebhookRejection) => void) | undefined;
}

/**
 * Why a request was answered without an event.
 *
 * - 401: it has no valid signature; `error` is a {@link WebhookSignatureError}.
 * - 500: its signature could not be checked, or its body could not be read, because of the receiver or its settings.
 */
export interface WebhookRejection {
  readonly status: 401 | 500;
  readonly error: unknown;
}

/**
 * Returns a fetch-style handler of webhooks that handles each event once, however often it is sent.
 *
 * ```ts
 * const POST = webhookOnce(
 *   onceward,
 *   {
 *     namespace: "stripe-events",
 *     source: stripeEvents((body, signature) => stripe.webhooks.constructEventAsync(body, signature, endpointSecret)),
 *   },
 *   async (event, claim) => {
 *     if (event.type === "invoice.paid") await ship(event.data.object, { idempotencyKey: claim.deriveKey("shipping") });
 *   },
 * );
 * ```
 *
 * The provider is answered:
 *
 * - 200 once the event is settled: handled now, handled before (`Idempotency-Replayed: true`), or failed permanently
 *   with a TerminalError, so that it is not sent again.
 * - 401 for an invalid signature, and 400 for an event without an id: nothing is claimed. Also 400 for an event that is too old:
 *   the provider keeps it as failed, and a person finds out whether it was handled.
 * - 503 with Retry-After while another process handles it, or Onceward is unreachable: the provider sends it again.
 * - 500 if the function throws: the claim is released, and the provider sends it again. Also 500 if `source.verify`
 *   throws anything but a WebhookSignatureError, such as for a missing secret: nothing is claimed (`onRejected`).
 *
 * A provider waits for seconds, not minutes: for longer work, let the function put a message into a queue, with the
 * event's id as its key. Limit the body's size before the handler, which reads the body before it can check the
 * signature.
 *
 * @throws OncewardError INVALID_REQUEST for invalid options.
 */
export function webhookOnce<Event>(
  onceward: Runner,
  options: WebhookOptions<Event>,
  fn: (event: Event, claim: Claim, headers: Headers) => unknown,
): (request: Request) => Promise<Response> {
  const { source, fingerprint, resolve, onRejected = warnOfRejections() } = options;
  checkFunction("fn", fn);
  checkOptionalFunction("fingerprint", fingerprint);
  const handle = createEffectHandler(
    onceward,
    withMessageTime<Received<Event>, ConsumerOptions<Received<Event>>>(
      {
        ...options,
        fingerprint: fingerprint && (({ event, headers }) => fingerprint(event, headers)),
        resolve: resolve && ((claim, { event }) => resolve(claim, event)),
      },
      ({ event, headers }) => source.createdAt?.(event, headers)?.getTime() ?? Number.NaN,
    ),
    ({ event, headers }: Received<Event>) => source.key(event, headers),
    ({ event, headers }: Received<Event>, claim: Claim) => fn(event, claim, headers),
  );
  return async (request) => {
    const body = await request.text();
    let event: Event;
    try {
      event = await source.verify(body, request.headers);
    } catch (error) {
      const status = error instanceof WebhookSignatureError ? 401 : 500;
      onRejected({ status, error });
      return answer(
        status,
        status === 401 ? "The signature is invalid." : "The event could not be verified.",
      );
    }
    const delivery = await handle({ event, headers: request.headers });
    switch (delivery.kind) {
      case "processed":
      case "failed":
        return answer(200);
      case "duplicate":
        return answer(200, undefined, { "idempotency-replayed": "true" });
      case "refused":
        return answer(400, delivery.error.message);
      case "released":
        return answer(500, "The event could not be handled.");
      case "postponed":
        return answer(503, "The event can't be handled now.", {
          "retry-after": `${Math.ceil(delivery.delayMs / 1000)}`,
        });
      default:
        return delivery satisfies never;
    }
  };
}

/**
 * Warns of the first invalid signature only: anyone can send more. The first may be the provider's, with a wrong
 * secret.
 */
function warnOfRejections(): (rejection: WebhookRejection) => void {
  let warned = false;
  return ({ status, error }) => {
    if (status === 401 && warned) return;
    warned ||= status === 401;
    warn(`A webhook was answered with ${status}: ${error}`, "ONCEWARD_WEBHOOK_REJECTED");
  };
}

function answer(status: number, text?: string, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(text ?? null, { status, headers });
}
