import { createServer } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { createOnceward } from "@onceward/client";
import { idempotency } from "@onceward/client/express";
import type { HttpProfile } from "@onceward/client/http";
import express from "express";

/** A service behind our guard, for Express: onceward.ts PROFILE PORT, with the address and the API key in the environment. */
const [profile = "onceward", port] = process.argv.slice(2);
const { ONCEWARD_ADDRESS: address = "", ONCEWARD_API_KEY: apiKey = "" } = process.env;
const onceward = createOnceward({ address, apiKey });
const app = express();
let effects = 0;
app.get("/count", (_req, res) => void res.send(String(effects)));
app.use(express.json());
const guard = idempotency(onceward, {
  namespace: `charges-${profile}`,
  profile: profile as HttpProfile,
  methods: ["POST", "PUT"],
  caller: (req) => req.headers.authorization ?? "",
});
app.all(["/charges", "/refunds"], guard, async (req, res) => {
  if (req.headers["x-fail"] !== undefined) return void res.status(503).json({});
  if (req.body.amount === "invalid") return void res.status(422).json({});
  await pause(20);
  effects++;
  res.cookie("session", String(effects)).status(201).location(`/charges/${effects}`).json({ id: effects });
});
createServer(app).listen(Number(port), "127.0.0.1");
