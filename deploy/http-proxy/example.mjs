// A service that knows nothing of idempotency keys, for deploy/compose.http-proxy.yml: each POST is a charge, GET shows all.
import { createServer } from "node:http";

const [port = "3000", host] = process.argv.slice(2);
const charges = [];
createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request) body += chunk;
  if (request.method === "POST") charges.push(body);
  response.writeHead(request.method === "POST" ? 201 : 200, { "content-type": "application/json" });
  response.end(JSON.stringify(request.method === "POST" ? { charge: charges.length } : charges));
}).listen(Number(port), host);
