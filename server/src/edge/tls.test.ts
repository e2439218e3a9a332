import { copyFile } from "node:fs/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { makeCertificate } from "../../../test/helpers/network/certificates.ts";
import { openTls } from "./tls.ts";

const SECOND_MS = 1000;

test("renewed files are in use within two minutes, and no earlier than after half a minute", async () => {
  const [first, renewed] = [await makeCertificate(), await makeCertificate()];
  onTestFinished(() => Promise.all([first.remove(), renewed.remove()]).then(() => {}));
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const onRenewed = vi.fn();
  const onFailed = vi.fn();
  const files = { certificate: first.certificateFile, key: first.keyFile, clientCa: undefined };
  const tls = openTls({ files, onRenewed, onFailed });
  tls.start();
  await copyFile(renewed.certificateFile, first.certificateFile);
  await copyFile(renewed.keyFile, first.keyFile);
  await vi.advanceTimersByTimeAsync(30 * SECOND_MS);
  expect(onRenewed).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(90 * SECOND_MS);
  expect(onRenewed).toHaveBeenCalledOnce();
  expect(tls.options.cert).toBe(renewed.pem.cert);
  await tls.stop();
  expect(onFailed).not.toHaveBeenCalled();
});
