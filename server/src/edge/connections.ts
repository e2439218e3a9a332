import { isIPv6, type Server, type Socket } from "node:net";

/** The connections of a server, whatever they have got to: Node's own lists have none that is still in its TLS handshake. */
export interface Connections {
  /** Cuts them all. */
  destroy(): void;
}

export interface AddressLimit {
  /** Connections at once from one address; of IPv6 from one /64, which a host may have to itself. */
  readonly maxPerAddress: number;
}

/** Follows a server from before it listens, and cuts connections beyond the limit before anything is done for them. */
export function trackConnections(server: Server, { maxPerAddress }: AddressLimit): Connections {
  const sockets = new Set<Socket>();
  const counts = new Map<string, number>();
  // Before all others that listen, which find the socket destroyed then.
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
  };
}

const MAPPED = /^::ffff:(?=\d+\.)/i;
const ZONE = /%.*$/;

/** Returns by what a peer is counted: its address of IPv4, also where it is written as IPv6, or its /64. */
export function countedAddress(remote: string): string {
  const address = remote.replace(MAPPED, "").replace(ZONE, "");
  return isIPv6(address) ? networkOf(address) : address;
}

/** The first four groups of an address. */
function networkOf(address: string): string {
  const [head = "", tail] = address.split("::");
  const front = head === "" ? [] : head.split(":");
  const back = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? [] : Array<string>(8 - front.length - back.length).fill("0");
  const groups = [...front, ...zeros, ...back].slice(0, 4);
  return groups.map((group) => group.replace(/^0+(?=.)/, "").toLowerCase()).join(":");
}
