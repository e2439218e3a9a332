/** A code that a library gives its errors, such as ECONNRESET or card_declined: no sentence, and no data of a user. */
const CODE = /^[A-Za-z0-9_.-]{1,64}$/;

/**
 * Returns the text with which a released claim names the function's error: the name of its class and its code, such as
 * "StripeCardError (card_declined)"; the type of a value that is not an Error. Never its message, which may hold secrets
 * and personal data: the reason of a release is stored in plain form.
 */
export function nameOfError(error: unknown): string {
  if (!(error instanceof Error)) return error === null ? "null" : typeof error;
  const name = `${error.name}`;
  return "code" in error && CODE.test(`${error.code}`) ? `${name} (${error.code})` : name;
}

/** Returns the caller's description of an error; its name if the caller has none, or its function throws. */
export function describe(error: unknown, describeError: (error: unknown) => string = nameOfError): string {
  try {
    return `${describeError(error)}`;
  } catch {
    return nameOfError(error);
  }
}
