import { randomBytes } from "node:crypto";

/** Returns a new UUID of version 7 that was created at a time, in milliseconds since the Unix epoch. */
export function uuidV7At(createdAtMs: number): string {
  const time = Math.floor(createdAtMs).toString(16).padStart(12, "0");
  const random = randomBytes(10).toString("hex");
  return [
    time.slice(0, 8),
    time.slice(8),
    `7${random.slice(0, 3)}`,
    `8${random.slice(3, 6)}`,
    random.slice(6, 18),
  ].join("-");
}

const DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** Returns a new ULID that was created at a time, in milliseconds since the Unix epoch. */
export function ulidAt(createdAtMs: number): string {
  let time = "";
  for (let rest = Math.floor(createdAtMs); time.length < 10; rest = Math.floor(rest / 32)) {
    time = DIGITS.charAt(rest % 32) + time;
  }
  return time + Array.from(randomBytes(16), (byte) => DIGITS.charAt(byte % 32)).join("");
}
