import { expect, onTestFinished, test } from "vitest";
import { fuzz, MAX_RSS_MB } from "../lab/fuzz/fuzz.ts";
import { startTarget } from "../support/attacks/hostility.ts";
import { makeCertificate } from "../support/network/certificates.ts";

/** `npm run lab -- fuzz` runs longer, with any seed. */
const SEED = 1;
/** On a busy machine, the bystander's handshakes take long. */
const PATIENT = { ONCEWARD_REQUEST_TIMEOUT: "10s" };

test.each([
  ["in the clear", 3000],
  ["over TLS", 2000],
] as const)(
  "broken conversations, %s, harm neither the server nor other callers",
  { timeout: 60_000 },
  async (how, frames) => {
    const certificate = how === "over TLS" ? await makeCertificate() : undefined;
    onTestFinished(() => certificate?.remove());
    const { server, tenant, end } = await startTarget(certificate, PATIENT);
    onTestFinished(end);
    const tls = certificate && { ca: certificate.pem.cert };
    const report = await fuzz({ server, apiKey: tenant.apiKey, tls }, { seed: SEED, frames });
    expect(report.findings.join("\n")).toBe("");
    expect(server.alive).toBe(true);
    expect(report.rssPeakMb).toBeLessThan(MAX_RSS_MB);
    expect(report.frames).toBeGreaterThanOrEqual(frames);
    expect(report.bystanderCalls).toBeGreaterThan(10);
  },
);
