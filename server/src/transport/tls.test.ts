import { copyFile, readFile, writeFile } from "node:fs/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { makeCertificate } from "../../../test/support/network/certificates.ts";
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

test("the time until a file's earliest certificate expires follows renewed files", async () => {
  const [first, renewed, authority] = [
    await makeCertificate(1),
    await makeCertificate(30),
    await makeCertificate(9),
  ];
  onTestFinished(() => Promise.all([first, renewed, authority].map((each) => each.remove())).then(() => {}));
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const files = {
    certificate: first.certificateFile,
    key: first.keyFile,
    clientCa: authority.certificateFile,
  };
  const tls = openTls({ files, onRenewed: () => {}, onFailed: () => {} });
  const days = () =>
    Object.fromEntries([...tls.expiresInS()].map(([file, s]) => [file, Math.round(s / 86_400)]));
  expect(days()).toEqual({ server: 1, client_ca: 9 });
  tls.start();
  await copyFile(renewed.keyFile, first.keyFile);
  // A chain of which the second certificate expires first.
  await writeFile(
    first.certificateFile,
    renewed.pem.cert + (await readFile(authority.certificateFile, "utf8")),
  );
  await vi.advanceTimersByTimeAsync(120 * SECOND_MS);
  expect(days()).toEqual({ server: 9, client_ca: 9 });
  await tls.stop();
  vi.setSystemTime(Date.now() + 20 * 86_400 * SECOND_MS);
  expect(days()).toEqual({ server: -11, client_ca: -11 });
});
