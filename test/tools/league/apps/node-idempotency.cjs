/** A service behind @node-idempotency/nestjs: node-idempotency.cjs PORT. */
require("reflect-metadata");
const { Module, Controller, HttpException, Post, Req, Res } = require("@nestjs/common");
const { NestFactory } = require("@nestjs/core");
const { NodeIdempotencyModule, Idempotent } = require("@node-idempotency/nestjs");

let effects = 0;

class Charges {
  async charge(req, res) {
    if (req.headers["x-fail"] !== undefined) throw new HttpException("fail", 503);
    if (req.body.amount === "invalid") throw new HttpException("amount", 422);
    await new Promise((resolve) => setTimeout(resolve, 20));
    effects++;
    res.cookie("session", String(effects));
    res.location(`/charges/${effects}`);
    res.status(201);
    return { id: effects };
  }
}

// Decorators, without a compiler: each is a function of a method.
const method = Object.getOwnPropertyDescriptor(Charges.prototype, "charge");
Req()(Charges.prototype, "charge", 0);
Res({ passthrough: true })(Charges.prototype, "charge", 1);
Post(["/charges", "/refunds"])(Charges.prototype, "charge", method);
Idempotent()(Charges.prototype, "charge", method);
Controller()(Charges);

class App {}
Module({
  imports: [NodeIdempotencyModule.forRootAsync({ storage: { adapter: "memory" } })],
  controllers: [Charges],
})(App);

async function main() {
  const app = await NestFactory.create(App, { logger: false });
  app.getHttpAdapter().get("/count", (_req, res) => res.send(String(effects)));
  await app.listen(Number(process.argv[2]), "127.0.0.1");
}
void main();
