import { appendFileSync } from "node:fs";
import { createServer } from "node:http";

/**
 * An upstream service in a process of its own, which can be killed: `node bank.ts LEDGER PORT`. It writes the key of each charge to
 * its ledger, waits a moment before and after so that a kill can come anywhere, and answers.
 */
const [ledger = "", port] = process.argv.slice(2);
const later = () => new Promise((resolve) => setTimeout(resolve, Math.random() * 20));

const server = createServer(async (req, res) => {
  req.resume();
  await later();
  // One write of a few bytes at the end of a file is whole or absent.
  appendFileSync(ledger, `${req.headers["idempotency-key"]}\n`);
  await later();
  res.writeHead(201, { "content-type": "text/plain" }).end("charged");
});
server.listen(Number(port), "127.0.0.1", () => process.stdout.write("listening\n"));
