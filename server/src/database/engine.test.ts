import { expect, test } from "vitest";
import { unsupportedEngineOf } from "./engine.ts";

test.each([
  ["CockroachDB CCL v24.1.0 (x86_64-pc-linux-gnu, built 2024/05/15 21:28:29, go1.22.2)", "CockroachDB"],
  ["PostgreSQL 11.2-YB-2.20.1.0-b0 on x86_64-pc-linux-gnu, compiled by clang version 16.0.6", "YugabyteDB"],
  ["PostgreSQL 15.2-YB-2.25.0.0-b0 on aarch64-unknown-linux-gnu, 64-bit", "YugabyteDB"],
  ["PostgreSQL 18.4 on x86_64-pc-linux-gnu, compiled by gcc (Ubuntu) 7.5.0, 64-bit", undefined],
  ["PostgreSQL 15.14 (Debian 15.14-0+deb12u1) on x86_64-pc-linux-gnu, 64-bit", undefined],
  ["EnterpriseDB 16.2.0 on x86_64-pc-linux-gnu", undefined],
])("%s: %s", (version, name) => {
  expect(unsupportedEngineOf(version)?.name).toBe(name);
});
