import { expect, test } from "vitest";
import { countedAddress } from "./connections.ts";

test.each([
  ["10.1.2.3", "10.1.2.3"],
  ["::ffff:10.1.2.3", "10.1.2.3"],
  ["2001:db8:0:7:1:2:3:4", "2001:db8:0:7"],
  ["2001:0DB8::7:1:2:3:4", "2001:db8:0:7"],
  ["2001:db8::1", "2001:db8:0:0"],
  ["fe80::1%eth0", "fe80:0:0:0"],
  ["::1", "0:0:0:0"],
  ["::", "0:0:0:0"],
])("%s is counted as %s", (remote, counted) => {
  expect(countedAddress(remote)).toBe(counted);
});
