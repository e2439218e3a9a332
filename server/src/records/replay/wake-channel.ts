import { randomUUID } from "node:crypto";
import type { RedisCache } from "./redis.ts";
import type { RedisConnection } from "./redis-connection.ts";
import { createSubscriptions } from "./subscriptions.ts";

const ANNOUNCE_INTERVAL_MS = 1000;
/** An announcement counts this long, so that two in a row may be lost. */
const ANNOUNCEMENT_LIFETIME_MS = 3000;
/** A subscriber that has not received its own echo for this long is reconnected. */
const MAX_SILENCE_MS = 3000;

/**
 * Notifies replicas that a record was settled on another replica, by Redis' publish and subscribe. Nothing
 * depends on a message: a waiting claim polls Postgres, and a message only makes it poll at once.
 *
 * A replica subscribes to one channel for each record that claims await there. While it has waiters, it
 * announces so on a channel of all replicas, at once and then every second. A replica publishes settlements
 * only after a recent announcement of another replica, so that settlements cost nothing while no claim waits.
 */
export function createWakeChannel(options: {
  readonly publisher: Pick<RedisCache, "publish" | "isBypassed">;
  /** A connection for this purpose only; `close` closes it. */
  readonly subscriber: RedisConnection;
  readonly installationId: string;
  /** Called if a record, named by `recordName`, may have been settled on another replica. */
  readonly onSettled: (name: string) => void;
}) {
  const { publisher, subscriber, onSettled } = options;
  const replica = randomUUID();
  let { waitersChannel, settledPrefix, echoChannel } = channelsOf(options.installationId, replica);
  /** By `recordName`. */
  const awaited = new Set<string>();
  let othersWaitUntilMs = Number.NEGATIVE_INFINITY;
  let announcedAtMs = Number.NEGATIVE_INFINITY;
  let heardAtMs = performance.now();

  const subscriptions = createSubscriptions(subscriber, (channel, message) => {
    if (channel === echoChannel) heardAtMs = performance.now();
    else if (channel.startsWith(settledPrefix)) onSettled(channel.slice(settledPrefix.length));
    else if (channel === waitersChannel && message !== replica)
      othersWaitUntilMs = performance.now() + ANNOUNCEMENT_LIFETIME_MS;
  });
  const allChannels = () => [
    waitersChannel,
    echoChannel,
    ...Array.from(awaited, (name) => settledPrefix + name),
  ];
  for (const channel of allChannels()) subscriptions.want(channel);

  function announceWaiters(): void {
    announcedAtMs = performance.now();
    publisher.publish(waitersChannel, replica);
  }

  /**
   * Publishes an echo to itself. A subscriber gets no error when its server dies: a missing echo shows it.
   */
  function checkEcho(): void {
    const nowMs = performance.now();
    if (publisher.isBypassed() || !subscriptions.isConnected()) heardAtMs = nowMs;
    if (nowMs - heardAtMs > MAX_SILENCE_MS) {
      heardAtMs = nowMs;
      subscriptions.reconnect();
    }
    publisher.publish(echoChannel, "");
  }

  const timer = setInterval(() => {
    subscriptions.renew();
    checkEcho();
    if (awaited.size > 0) announceWaiters();
  }, ANNOUNCE_INTERVAL_MS).unref();

  return {
    /** Subscribes to a record that a claim awaits here, named by `recordName`. */
    listen(name: string): void {
      subscriptions.want(settledPrefix + name);
      awaited.add(name);
      if (performance.now() - announcedAtMs >= ANNOUNCE_INTERVAL_MS) announceWaiters();
    },
    /** Unsubscribes from a record that no claim awaits here. */
    ignore(name: string): void {
      subscriptions.unwant(settledPrefix + name);
      awaited.delete(name);
    },
    /** Publishes that a record was settled here. */
    announce(name: string): void {
      if (performance.now() < othersWaitUntilMs) publisher.publish(settledPrefix + name, "");
    },
    /** Changes the installation's id: messages of replicas with the old id are no longer received. */
    moveTo(installationId: string): void {
      for (const channel of allChannels()) subscriptions.unwant(channel);
      ({ waitersChannel, settledPrefix, echoChannel } = channelsOf(installationId, replica));
      for (const channel of allChannels()) subscriptions.want(channel);
      othersWaitUntilMs = Number.NEGATIVE_INFINITY;
      heardAtMs = performance.now();
      if (awaited.size > 0) announceWaiters();
    },
    close(): void {
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
