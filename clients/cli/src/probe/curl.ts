import type { ProbeRequest } from "./endpoint.ts";
import type { Cut } from "./exchange.ts";

/** A body that is longer and ends with spaces is written as the command that pads it. */
const LONG_BODY = 1024;

/** Returns a shell command that sends the request. Environment variables stay names, so that it contains no secret of theirs. */
export function curlOf({ url, method, headers, body, encoding }: ProbeRequest, cut?: Cut): string {
  const named = Object.entries(headers).flatMap(([name, value]) =>
    [value].flat().map((one) => `-H ${quoted(one === "" ? `${name};` : `${name}: ${one}`)}`),
  );
  const coded = {
    chunked: ["-H 'Transfer-Encoding: chunked'"],
    gzip: ["-H 'Content-Encoding: gzip'"],
  };
  const parts = ["curl", "-si", `-X ${method}`, ...named, ...(encoding ? coded[encoding] : [])];
  const command = [...parts, `--data-binary ${encoding === "gzip" ? "@-" : written(body)}`, quoted(url)].join(
    " ",
  );
  const piped = encoding === "gzip" ? `printf %s ${written(body)} | gzip -n | ${command}` : command;
  return withCut(piped, cut);
}

function written(body: string): string {
  const trimmed = body.trimEnd();
  if (body.length < LONG_BODY || trimmed.length > LONG_BODY) return quoted(body);
  return `"$(printf '%-${body.length}s' ${quoted(trimmed)})"`;
}

/** Returns a command with a comment, if the request is cut off. */
export function withCut(command: string, cut: Cut | undefined): string {
  return cut === undefined ? command : `${command} # the client ends the connection ${cut}`;
}

/** Quotes for a POSIX shell; text with a variable in double quotes, so that the shell expands it. */
export function quoted(text: string): string {
  if (!/\$\{\w+\}/.test(text)) return `'${text.replaceAll("'", `'\\''`)}'`;
  return `"${text.replace(/["\\`]|\$(?!\{\w+\})/g, "\\$&")}"`;
}
