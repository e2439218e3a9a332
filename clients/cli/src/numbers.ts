import { InvalidArgumentError } from "commander";

/** A whole number. @throws InvalidArgumentError. */
export function parseCount(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It must be a whole number.");
}

/** How many items a list shows. @throws InvalidArgumentError. */
export function parseLimit(text: string): number {
  const limit = parseCount(text);
  if (limit === 0) throw new InvalidArgumentError("It must be at least 1.");
  return limit;
}

/** A 64-bit number, such as a fencing token. @throws InvalidArgumentError. */
export function parseId(text: string): bigint {
  if (/^[1-9]\d{0,17}$/.test(text)) return BigInt(text);
  throw new InvalidArgumentError("It must be a positive whole number.");
}

/** @throws InvalidArgumentError. */
export function parseFlag(text: string): boolean {
  if (text === "true" || text === "false") return text === "true";
  throw new InvalidArgumentError("It must be true or false.");
}
