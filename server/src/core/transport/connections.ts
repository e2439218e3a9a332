import { isIPv6, type Server, type Socket } from "node:net";

/** All connections of a server. Node's own lists have none that is still in its TLS handshake. */
export interface Connections {
  /** Cuts all connections. */
  destroy(): void;
  /** Returns the number of open connections. */
  count(): number;
}

export interface AddressLimit {
  /** Open connections from one IPv4 address, or from one IPv6 /64, which a single host may own. */
  readonly maxPerAddress: number;
}

/**
 * Tracks the connections of a server that does not listen yet, and cuts those beyond the limit before they
 * cost anything.
 */
export function trackConnections(server: Server, { maxPerAddress }: AddressLimit): Connections {
  const sockets = new Set<Socket>();
  const counts = new Map<string, number>();
  // Runs before all other listeners, so that they find the socket destroyed.
  server.prependListener("connection", (socket: Socket) => {
    const address = countedAddress(socket.remoteAddress ?? "");
    const count = counts.get(address) ?? 0;
    if (count >= maxPerAddress) {
      socket.destroy();
      return;
    }
    counts.set(address, count + 1);
    sockets.add(socket);
    socket.once("close", () => {
      sockets.delete(socket);
      const left = (counts.get(address) ?? 1) - 1;
      if (left === 0) counts.delete(address);
      else counts.set(address, left);
    });
  });
  return {
    destroy() {
      for (const socket of sockets) socket.destroy();
    },
    count: () => sockets.size,
  };
}

const MAPPED = /^::ffff:(?=\d+\.)/i;
const ZONE = /%.*$/;

/**
 * Returns the key by which a peer's connections are counted: its IPv4 address, even if it is written as IPv6,
 * or its /64.
 */
export function countedAddress(remote: string): string {
  const address = remote.replace(MAPPED, "").replace(ZONE, "");
  return isIPv6(address) ? networkOf(address) : address;
}

/** Returns the first four groups of an address. */
function networkOf(address: string): string {
  const [head = "", tail] = address.split("::");
  const front = head === "" ? [] : head.split(":");
  const back = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? [] : Array<string>(8 - front.length - back.length).fill("0");
  const groups = [...front, ...zeros, ...back].slice(0, 4);
  return groups.map((group) => group.replace(/^0+(?=.)/, "").toLowerCase()).join(":");
}
