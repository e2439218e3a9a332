import { createServer, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";

/** A server of `node:http2` that answers with as many bytes as its argument says, for P4. It prints its port. */
const reply = Buffer.alloc(Number(process.argv[2]));
const server = createServer();
server.on("stream", (stream: ServerHttp2Stream) => {
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
  stream.resume().on("end", () => {
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.end(reply);
  });
});
server.listen(0, "127.0.0.1", () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));
