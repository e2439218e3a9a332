import { randomUUID } from "node:crypto";
import type { RedisCache } from "./redis.ts";
import type { RedisConnection } from "./redis-connection.ts";
import { createSubscriptions } from "./subscriptions.ts";

/**
 * Tells replicas that a record was settled on another one, by Redis' publish and subscribe. Nothing depends on it: who
 * waits asks Postgres again and again, and a message is only a reason to ask at once, so that one that is lost costs
 * what there would be to wait without.
 *
 * A replica listens on one channel for each record that is awaited there. So that completions don't pay for it where
 * nobody waits, it says on a channel of all replicas that it has waiters, at once and then every second, and
 * settlements are published only while another replica has said so lately.
 */
export interface WakeChannel {
  /** Somebody awaits a record here, named by `recordName`. */
  listen(name: string): void;
  /** Nobody awaits it here any more. */
  ignore(name: string): void;
  /** It was settled here. */
  announce(name: string): void;
  close(): void;
}

export interface WakeChannelOptions {
  readonly publisher: Pick<RedisCache, "publish">;
  /** Used for nothing else, or a cluster's, which has a connection of its own for subscriptions. */
  readonly subscriber: RedisConnection;
  readonly installationId: string;
  /** A record, named by `recordName`, may have been settled on another replica. */
  readonly onSettled: (name: string) => void;
}

const SAY_INTERVAL_MS = 1000;
/** Two sayings may be lost. */
const SAID_FOR_MS = 3000;

/** @see WakeChannel */
export function createWakeChannel(options: WakeChannelOptions): WakeChannel {
  const { publisher, subscriber, installationId, onSettled } = options;
  const waitersChannel = `onceward:wake:${installationId}:waiters`;
  const settledPrefix = `onceward:wake:${installationId}:settled:`;
  const replica = randomUUID();
  let awaited = 0;
  let othersWaitUntilMs = Number.NEGATIVE_INFINITY;
  let saidAtMs = Number.NEGATIVE_INFINITY;
  let heardAtMs = performance.now();

  const subscriptions = createSubscriptions(subscriber, (channel, message) => {
    if (channel !== waitersChannel) onSettled(channel.slice(settledPrefix.length));
    else if (message === replica) heardAtMs = performance.now();
    else othersWaitUntilMs = performance.now() + SAID_FOR_MS;
  });
  subscriptions.want(waitersChannel);

  function sayThatSomebodyWaits(): void {
    saidAtMs = performance.now();
    publisher.publish(waitersChannel, replica);
  }

  const timer = setInterval(() => {
    if (awaited === 0) {
      heardAtMs = performance.now();
      return subscriptions.renew("is right");
    }
    // A replica hears itself, too; one that doesn't may have lost its subscriptions without being told.
    const isDeaf = performance.now() - heardAtMs > SAID_FOR_MS;
    if (isDeaf) heardAtMs = performance.now();
    subscriptions.renew(isDeaf ? "may be wrong" : "is right");
    sayThatSomebodyWaits();
  }, SAY_INTERVAL_MS).unref();

  return {
    listen(name) {
      subscriptions.want(settledPrefix + name);
      awaited++;
      if (performance.now() - saidAtMs >= SAY_INTERVAL_MS) sayThatSomebodyWaits();
    },
    ignore(name) {
      subscriptions.unwant(settledPrefix + name);
      awaited--;
    },
    announce(name) {
      if (performance.now() < othersWaitUntilMs) publisher.publish(settledPrefix + name, "");
    },
    close() {
      clearInterval(timer);
      subscriptions.close();
    },
  };
}
