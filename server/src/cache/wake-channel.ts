import { randomUUID } from "node:crypto";
import type { RedisCache } from "./redis.ts";
import type { RedisConnection } from "./redis-connection.ts";
import { createSubscriptions } from "./subscriptions.ts";

/**
 * Tells replicas that a record was settled on another one, by Redis' publish and subscribe. Nothing depends on it: who
 * waits asks Postgres again and again, and a message is only a reason to ask at once, so that one that is lost costs
 * what there would be to wait without.
 *
 * A replica listens on one channel for each record that is awaited there. So that replayCache don't pay for it where
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
  /** The installation has another id: what replicas that know the old one say is not heard any more. */
  moveTo(installationId: string): void;
  close(): void;
}

export interface WakeChannelOptions {
  readonly publisher: Pick<RedisCache, "publish" | "isBypassed">;
  /** Used for nothing else, and closed with the channel. */
  readonly subscriber: RedisConnection;
  readonly installationId: string;
  /** A record, named by `recordName`, may have been settled on another replica. */
  readonly onSettled: (name: string) => void;
}

const SAY_INTERVAL_MS = 1000;
/** Two of what comes every second may be lost. */
const SAID_FOR_MS = 3000;
const DEAF_AFTER_MS = 3000;

/** @see WakeChannel */
export function createWakeChannel(options: WakeChannelOptions): WakeChannel {
  const { publisher, subscriber, onSettled } = options;
  const replica = randomUUID();
  let { waitersChannel, settledPrefix, echoChannel } = channelsOf(options.installationId, replica);
  /** By `recordName`. */
  const awaited = new Set<string>();
  let othersWaitUntilMs = Number.NEGATIVE_INFINITY;
  let saidAtMs = Number.NEGATIVE_INFINITY;
  let heardAtMs = performance.now();

  const subscriptions = createSubscriptions(subscriber, (channel, message) => {
    if (channel === echoChannel) heardAtMs = performance.now();
    else if (channel.startsWith(settledPrefix)) onSettled(channel.slice(settledPrefix.length));
    else if (channel === waitersChannel && message !== replica)
      othersWaitUntilMs = performance.now() + SAID_FOR_MS;
  });
  const allChannels = () => [
    waitersChannel,
    echoChannel,
    ...Array.from(awaited, (name) => settledPrefix + name),
  ];
  for (const channel of allChannels()) subscriptions.want(channel);

  function sayThatSomebodyWaits(): void {
    saidAtMs = performance.now();
    publisher.publish(waitersChannel, replica);
  }

  /** Who only listens isn't told that nobody is there any more: a replica that doesn't hear itself connects anew. */
  function checkHearing(): void {
    const nowMs = performance.now();
    if (publisher.isBypassed() || !subscriptions.isConnected()) heardAtMs = nowMs;
    if (nowMs - heardAtMs > DEAF_AFTER_MS) {
      heardAtMs = nowMs;
      subscriptions.reconnect();
    }
    publisher.publish(echoChannel, "");
  }

  const timer = setInterval(() => {
    subscriptions.renew();
    checkHearing();
    if (awaited.size > 0) sayThatSomebodyWaits();
  }, SAY_INTERVAL_MS).unref();

  return {
    listen(name) {
      subscriptions.want(settledPrefix + name);
      awaited.add(name);
      if (performance.now() - saidAtMs >= SAY_INTERVAL_MS) sayThatSomebodyWaits();
    },
    ignore(name) {
      subscriptions.unwant(settledPrefix + name);
      awaited.delete(name);
    },
    announce(name) {
      if (performance.now() < othersWaitUntilMs) publisher.publish(settledPrefix + name, "");
    },
    moveTo(installationId) {
      for (const channel of allChannels()) subscriptions.unwant(channel);
      ({ waitersChannel, settledPrefix, echoChannel } = channelsOf(installationId, replica));
      for (const channel of allChannels()) subscriptions.want(channel);
      othersWaitUntilMs = Number.NEGATIVE_INFINITY;
      heardAtMs = performance.now();
      if (awaited.size > 0) sayThatSomebodyWaits();
    },
    close() {
      clearInterval(timer);
      subscriptions.close();
    },
  };
}

function channelsOf(installationId: string, replica: string) {
  return {
    waitersChannel: `onceward:wake:${installationId}:waiters`,
    settledPrefix: `onceward:wake:${installationId}:settled:`,
    echoChannel: `onceward:wake:${installationId}:echo:${replica}`,
  };
}
