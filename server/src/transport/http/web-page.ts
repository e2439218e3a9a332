import type { IncomingMessage, ServerResponse } from "node:http";

/** Returns a header by its name in lower case. */
export type ReadHeader = (name: string) => string | undefined;

/** Recognizes calls that a script of the page has sent. */
export interface PageSite {
  /** Returns the value of the session's cookie, if a script of the page itself has sent it. */
  sessionCookie(header: ReadHeader): string | undefined;
}

/** A page on the port of HTTP, whose scripts make calls with a session in place of a credential: the console. */
export interface WebPage {
  readonly site: PageSite;
  /** Answers a request for a path of the page; returns false for other paths. */
  answer(path: string, request: IncomingMessage, response: ServerResponse): boolean;
}
