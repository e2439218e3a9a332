import type { BrowserContext, Response } from "playwright-core";

/** A defect that the browser noticed, in words. */
export type Problem = string;

/** What a page may do that is a problem otherwise. */
export interface Allowed {
  /** HTTP status codes of answers that the test provokes, such as 403. */
  readonly statuses?: readonly number[];
  /** Other origins that the test leads to, such as the issuer's. */
  readonly origins?: readonly string[];
  /** What the page prints about a failure that the test provokes. */
  readonly printed?: RegExp;
}

/** The message that Chromium prints for each answer with an error status: `statuses` decides about these. */
const FAILED_ANSWER = "Failed to load resource: the server responded with a status of";
/** A request that ended because its page was closed, left or no longer waits for the answer. */
const GIVEN_UP = "net::ERR_ABORTED";

/**
 * Collects what goes wrong in all pages of a context: uncaught errors, printed errors and warnings, violations of
 * the content security policy, requests to other origins, failed requests, and answers with an error status.
 *
 * @param origin of the console. Nothing else may be requested.
 */
export async function collectProblems(
  context: BrowserContext,
  origin: string,
  { statuses = [], origins = [], printed }: Allowed = {},
): Promise<readonly Problem[]> {
  const problems: Problem[] = [];
  context.on("weberror", (error) => problems.push(`uncaught error: ${error.error().stack}`));
  context.on("console", (message) => {
    if (message.type() !== "error" && message.type() !== "warning") return;
    if (!message.text().startsWith(FAILED_ANSWER) && printed?.test(message.text()) !== true)
      problems.push(`printed ${message.type()}: ${message.text()}`);
  });
  context.on("dialog", (dialog) => {
    problems.push(`a page opened a dialog of the browser: ${dialog.message()}`);
    // The page may be closed already.
    dialog.dismiss().catch(() => {});
  });
  context.on("request", (request) => {
    const url = new URL(request.url());
    if (url.protocol !== "data:" && ![origin, ...origins].includes(url.origin))
      problems.push(`request to ${request.url()}`);
  });
  context.on("requestfailed", (request) => {
    const reason = request.failure()?.errorText;
    if (reason !== GIVEN_UP) problems.push(`failed request to ${request.url()}: ${reason}`);
  });
  context.on("response", (response) => {
    if (response.status() >= 400 && !statuses.includes(response.status())) {
      problems.push(`answer ${describeAnswer(response)}`);
    }
  });
  await context.addInitScript(printViolations);
  return problems;
}

function describeAnswer(response: Response): string {
  return `${response.status()} to ${response.request().method()} ${response.url()}`;
}

/** Runs in each page, before its own scripts. */
function printViolations(): void {
  document.addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) => {
    // The test reads it from the console, together with what the page prints.
    // biome-ignore lint/suspicious/noConsole: as said.
    console.error(`content security policy: ${violatedDirective} by ${blockedURI}`);
  });
}
