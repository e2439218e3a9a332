import type { RedisConnection } from "./redis-connection.ts";

/** Channels per command. */
const MAX_CHANNELS = 500;

/**
 * Keeps a connection subscribed to the wanted channels, none at first, also after it was lost. Never throws: `renew` repeats
 * failed commands.
 */
export function createSubscriptions(
  connection: RedisConnection,
  onMessage: (channel: string, message: string) => void,
) {
  const wanted = new Set<string>();
  const held = new Set<string>();
  /** Channels whose state may differ from the wanted state. */
  const changed = new Set<string>();
  let closed = false;
  let syncing = false;

  function change(channel: string): void {
    changed.add(channel);
    if (syncing || closed) return;
    syncing = true;
    // Changes of one turn of the event loop are sent in one command.
    setImmediate(() => void sync());
  }

  async function sync(): Promise<void> {
    while (changed.size > 0 && !closed) {
      const channels = [...changed];
      changed.clear();
      const missing = channels.filter((channel) => wanted.has(channel) && !held.has(channel));
      const surplus = channels.filter((channel) => !wanted.has(channel) && held.has(channel));
      for (const some of chunks(missing)) {
        if (await succeeds(() => connection.subscribe(...some)))
          for (const channel of some) held.add(channel);
      }
      for (const some of chunks(surplus)) {
        for (const channel of some) held.delete(channel);
        await succeeds(() => connection.unsubscribe(...some));
      }
    }
    syncing = false;
  }

  async function succeeds(command: () => Promise<unknown>): Promise<boolean> {
    if (!isConnected()) return false;
    return command().then(
      () => true,
      () => false,
    );
  }

  const isConnected = () => connection.status === "ready";

  function renew(): void {
    if (!isConnected()) return;
    for (const channel of wanted) if (!held.has(channel)) change(channel);
  }

  const renewAll = () => {
    held.clear();
    renew();
  };
  connection.on("ready", renewAll);
  connection.on("message", onMessage);
  return {
    want(channel: string): void {
      wanted.add(channel);
      change(channel);
    },
    unwant(channel: string): void {
      wanted.delete(channel);
      change(channel);
    },
    /** Repeats subscriptions that failed. */
    renew,
    /** Returns whether the connection seems to be open. */
    isConnected,
    /** Replaces a connection that no longer delivers. */
    reconnect: () => connection.disconnect(true),
    close(): void {
      closed = true;
      connection.off("ready", renewAll);
      connection.off("message", onMessage);
      connection.disconnect();
    },
  };
}

function chunks(channels: readonly string[]): readonly (readonly string[])[] {
  const count = Math.ceil(channels.length / MAX_CHANNELS);
  return Array.from({ length: count }, (_, index) =>
    channels.slice(index * MAX_CHANNELS, (index + 1) * MAX_CHANNELS),
  );
}
