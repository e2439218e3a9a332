import { randomBytes } from "node:crypto";
import { lstatSync, unlinkSync } from "node:fs";
import { lchown, link, lstat, unlink } from "node:fs/promises";
import { type AddressInfo, connect, isIPv6, type Server, type Socket } from "node:net";

/**
 * Makes a port of a server that does not listen yet; it cuts connections beyond the limit before they cost anything.
 *
 * @param maxPerAddress Open connections from one IPv4 address, or from one IPv6 /64, which a single host may own.
 */
export function createPort(server: Server, maxPerAddress: number) {
  const sockets = trackConnections(server, maxPerAddress);
  /** Deletes the socket's file, if it is this server's. */
  let deleteFile = () => {};
  /** Resolves once the server listens. */
  const listening = (listen: (done: () => void) => void) =>
    new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      listen(() => {
        server.off("error", reject);
        resolve();
      });
    });
  return {
    /** Listens; resolves with the port's number. */
    async listen(host: string, port: number): Promise<number> {
      await listening((done) => server.listen(port, host, done));
      return (server.address() as AddressInfo).port;
    },
    /**
     * Listens on a Unix socket, whose file has the mode and the group from its first moment. Replaces the file of a socket that refuses
     * connections, as a killed process leaves it. Of processes that start at once, one gets the path.
     *
     * @param group the number of the file's group; undefined: the process' own.
     */
    async listenOnSocket(path: string, mode: number, group: number | undefined): Promise<void> {
      // First under a name of its own, for which the configuration leaves room: Node deletes that name at the end, regardless of its file.
      const own = `${path}.${randomBytes(4).toString("hex")}`;
      // Node binds before `listen` returns.
      const umask = process.umask(0o777 & ~mode);
      const bound = listening((done) => server.listen(own, done));
      process.umask(umask);
      await bound;
      try {
        if (group !== undefined) await lchown(own, -1, group);
        await takeName(own, path);
        const { dev, ino } = await lstat(own, { bigint: true });
        deleteFile = () => {
          const file = lstatSync(path, { bigint: true, throwIfNoEntry: false });
          if (file?.ino === ino && file.dev === dev) unlinkSync(path);
        };
      } finally {
        await unlink(own);
      }
    },
    /** Accepts no new connection, and cuts those that are left after `graceMs`; resolves when none is left. */
    close: (graceMs: number) =>
      new Promise<void>((resolve) => {
        const timer = setTimeout(() => {
          for (const socket of sockets) socket.destroy();
        }, graceMs);
        // Before it stops listening: until then, no other process replaces the file.
        deleteFile();
        // A server of HTTP/1.1 ends its idle connections, too.
        server.close(() => {
          clearTimeout(timer);
          resolve();
        });
      }),
    /** Returns the number of open connections. */
    connections: () => sockets.size,
  };
}

/**
 * Gives a listening socket another name. A name whose socket refuses connections is replaced only by the process that has taken the name
 * with a `~` in the same way: so one of several processes gets it, and none loses it.
 *
 * @throws Error if the name is taken.
 */
async function takeName(socket: string, name: string): Promise<void> {
  try {
    return await link(socket, name);
  } catch (error) {
    if (!(await isAbandoned(name))) throw error;
  }
  const right = `${name}~`;
  await takeName(socket, right);
  try {
    // Another process may have replaced it before.
    if (await isAbandoned(name)) await unlink(name);
    await link(socket, name);
  } finally {
    await unlink(right);
  }
}

/** Returns whether a path is a socket's, and refuses connections. */
async function isAbandoned(path: string): Promise<boolean> {
  const file = await lstat(path).catch(() => undefined);
  if (file?.isSocket() !== true) return false;
  return await new Promise((resolve) => {
    const socket = connect(path, () => {
      socket.destroy();
      resolve(false);
    });
    socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code === "ECONNREFUSED"));
  });
}

/** Returns the open connections of a server. Node's own lists have none that is still in its TLS handshake. */
function trackConnections(server: Server, maxPerAddress: number): ReadonlySet<Socket> {
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
  return sockets;
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
