/**
 * `npm run example -- nestjs`: a NestJS application that charges, and its clients that send each request twice at once and
 * then again. Node runs this file without a compiler, so its decorators are calls; each comment shows the decorator.
 */

import { Body, Controller, Module, Post } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { type Claim, newKey } from "@onceward/client";
import { CurrentClaim, Idempotent, OncewardModule } from "@onceward/client/nestjs";
import { findService, prove } from "./setup.ts";

const ORDERS = 20;

interface Order {
  readonly orderId: string;
}

const charges: string[] = [];

class ChargesController {
  async charge(order: Order, claim: Claim | undefined) {
    // The provider honours idempotency keys.
    return { id: `ch_${charges.push(order.orderId)}`, providerKey: claim?.deriveKey("provider") };
  }
}
// @Post() @Idempotent({ … }) async charge(@Body() order: Order, @CurrentClaim() claim: Claim | undefined)
const { prototype } = ChargesController;
Body()(prototype, "charge", 0);
CurrentClaim()(prototype, "charge", 1);
const charge = Object.getOwnPropertyDescriptor(prototype, "charge") ?? {};
Idempotent({ namespace: "example-nestjs", waitMs: 10_000 })(prototype, "charge", charge);
Post()(prototype, "charge", charge);
// @Controller("charges")
Controller("charges")(ChargesController);

class AppModule {}
// @Module({ … })
Module({
  imports: [
    OncewardModule.forRootAsync({
      useFactory: async () => ({
        client: await findService(),
        // In your API: the account that is logged in.
        http: { caller: () => "account-1" },
      }),
    }),
  ],
  controllers: [ChargesController],
})(AppModule);

const app = await NestFactory.create(AppModule, { logger: false });
await app.listen(0, "127.0.0.1");
const url = `${await app.getUrl()}/charges`;

async function pay(orderId: string): Promise<string> {
  const answer = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", "idempotency-key": `"${orderId}"` },
    body: JSON.stringify({ orderId }),
  });
  return await answer.text();
}

async function order(): Promise<string[]> {
  const orderId = newKey();
  const receipts = await Promise.all([pay(orderId), pay(orderId)]);
  return [...receipts, await pay(orderId)];
}

const receipts = (await Promise.all(Array.from({ length: ORDERS }, order))).flat();

prove("orders, requested three times each, were charged", charges.length, ORDERS);
prove("requests were answered", receipts.length, 3 * ORDERS);
prove("different receipts were sent", new Set(receipts).size, ORDERS);

await app.close();
