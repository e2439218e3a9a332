/** How a provider's requests become events. */
export interface WebhookSource<Event> {
  /**
   * The event, once its signature is known to hold; a signature that doesn't throws. Leave the cryptography to the
   * provider's own library.
   *
   * @param body as it was sent: what is signed is its text, not its JSON.
   */
  verify(body: string, headers: Headers): Event | Promise<Event>;
  /** The event's own id, the same each time it is sent: its operation key. */
  key(event: Event): string | undefined;
}

/**
 * Stripe's events, by their `id`.
 *
 * @param constructEvent checks the signature, as `stripe.webhooks.constructEventAsync(body, signature, endpointSecret)`.
 */
export function stripeEvents<Event extends { readonly id: string }>(
  constructEvent: (body: string, signature: string) => Event | Promise<Event>,
): WebhookSource<Event> {
  return {
    verify: (body, headers) => constructEvent(body, headerOf(headers, "stripe-signature")),
    key: ({ id }) => id,
  };
}

/** A GitHub webhook, as `@octokit/webhooks` calls its parts. */
export interface GitHubEvent {
  /** The `X-GitHub-Delivery`. */
  readonly id: string;
  /** Such as "pull_request". */
  readonly name: string;
  readonly payload: unknown;
}

/**
 * GitHub's webhooks, by their `X-GitHub-Delivery`, which a redelivery repeats. GitHub does not sign that header, so only
 * HTTPS vouches for it. Use it as `githubEvents<EmitterWebhookEvent>` for payloads with types.
 *
 * @param verify checks the signature, as `webhooks.verify(body, signature)` of `@octokit/webhooks`.
 */
export function githubEvents<Event extends GitHubEvent = GitHubEvent>(
  verify: (body: string, signature: string) => boolean | Promise<boolean>,
): WebhookSource<Event> {
  return {
    async verify(body, headers) {
      if (!(await verify(body, headerOf(headers, "x-hub-signature-256")))) throw new Error("wrong signature");
      const id = headers.get("x-github-delivery") ?? "";
      const name = headers.get("x-github-event") ?? "";
      return { id, name, payload: JSON.parse(body) } as Event;
    },
    key: ({ id }) => id || undefined,
  };
}

/**
 * Apple's App Store Server Notifications (version 2), by their `notificationUUID`.
 *
 * @param verify checks and decodes, as `verifier.verifyAndDecodeNotification(signedPayload)` of
 *   `@apple/app-store-server-library`.
 */
export function appleNotifications<Notification extends { readonly notificationUUID?: string }>(
  verify: (signedPayload: string) => Notification | Promise<Notification>,
): WebhookSource<Notification> {
  return {
    verify: (body) => verify(JSON.parse(body).signedPayload),
    key: ({ notificationUUID }) => notificationUUID,
  };
}

function headerOf(headers: Headers, name: string): string {
  const value = headers.get(name);
  if (value === null) throw new Error(`there is no ${name}`);
  return value;
}
