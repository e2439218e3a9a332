/** A service behind express-idempotency: express-idempotency.mjs PORT. */
import { setTimeout as pause } from "node:timers/promises";
import express from "express";
import idempotency from "express-idempotency";

const app = express();
let effects = 0;
app.get("/count", (_req, res) => res.send(String(effects)));
app.use(express.json());
app.all(["/charges", "/refunds"], idempotency.idempotency(), async (req, res) => {
  const service = idempotency.getSharedIdempotencyService();
  if (service.isHit(req)) return;
  if (req.headers["x-fail"] !== undefined) {
    service.reportError(req);
    return res.status(503).json({});
  }
  if (req.body.amount === "invalid") {
    service.reportError(req);
    return res.status(422).json({});
  }
  await pause(20);
  effects++;
  return res
    .cookie("session", String(effects))
    .status(201)
    .location(`/charges/${effects}`)
    .json({ id: effects });
});
app.listen(Number(process.argv[2]), "127.0.0.1");
