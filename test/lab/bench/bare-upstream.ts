import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** The service behind the HTTP proxy, for P19: it answers at once. Runs as a child process, and prints its port. */
const server = createServer((req, res) => {
  req.resume().on("end", () => res.writeHead(201, { "content-type": "application/json" }).end('{"id":1}'));
});
server.listen(0, "127.0.0.1", () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));
