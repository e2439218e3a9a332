/** A path of an operation has some hundred bytes; one of 4 KiB costs up to 7 ms of processor time. */
export const MAX_PATH_LENGTH = 4096;
/** A hostile path combines the ways of reading; a path of an honest client has up to six readings. */
const MAX_READINGS = 32;
/** A path that every service reads alike. */
const PLAIN = /^(?!.*(?:\/\/|\/\.|\.\/|\.$))[\w\-.~!$&'()*+,=:@/|^`{}"<>[\]]*$/;

/**
 * Returns the paths for which services take this one, itself included: servers and frameworks differ in whether and how often they
 * decode escapes, and in what they do about dot segments, backslashes, doubled slashes, parameters of segments, ends of names, and
 * characters that no path may have. Returns undefined for more than MAX_READINGS.
 *
 * @param path as it was sent, from its first slash to the query, with a character for each byte.
 */
export function readingsOf(path: string): readonly string[] | undefined {
  if (PLAIN.test(path)) return [path];
  const readings = new Set([path, Buffer.from(path, "latin1").toString()]);
  // Also those that are added meanwhile.
  for (const reading of readings)
    for (const read of READERS) {
      const other = read(reading);
      readings.add(other.startsWith("/") ? other : `/${other}`);
      if (readings.size > MAX_READINGS) return undefined;
    }
  return [...readings];
}

const READERS: readonly ((path: string) => string)[] = [
  // All escapes: WSGI, nginx, PHP. Those of a second round may be malformed.
  (path) =>
    path.replace(/(?:%[\da-f]{2})+/gi, (escapes) =>
      Buffer.from(escapes.replaceAll("%", ""), "hex").toString(),
    ),
  withoutEscapes,
  // WHATWG's URL, IIS.
  (path) => path.replaceAll("\\", "/"),
  // WHATWG's URL and Python's `urlsplit` with a path in place of a URL: the first segment is a host.
  (path) => path.replace(/^[/\\]{2,}[^/\\]*/, ""),
  // Servlets: parameters of a segment.
  (path) => path.replace(/;[^/]*/g, ""),
  // nginx, Go.
  (path) => path.replace(/\/{2,}/g, "/"),
  withoutDotSegments,
  // Windows, and services that trim.
  (path) => path.split("/").map(trimmed).join("/"),
  // WHATWG's URL, Python's `urlsplit`.
  (path) => path.replace(/[\t\n\r]/g, ""),
  // A decoded path that is parsed as a URL; C.
  (path) => path.replace(/[?#\0][\s\S]*$/, ""),
];

/** Decodes all escapes but those of delimiters, as Go and Node's frameworks do. */
export function withoutEscapes(path: string): string {
  return path.replace(/(?:%(?!2f|5c|3b|3f|23|25)[\da-f]{2})+/gi, (escapes) =>
    Buffer.from(escapes.replaceAll("%", ""), "hex").toString(),
  );
}

/** RFC 3986, section 5.2.4. */
function withoutDotSegments(path: string): string {
  const kept: string[] = [];
  const segments = path.split("/").slice(1);
  for (const segment of segments) {
    if (segment === "..") kept.pop();
    else if (segment !== ".") kept.push(segment);
  }
  const isFolder = /^\.{1,2}$/.test(segments.at(-1) ?? "");
  return `/${kept.join("/")}${isFolder && kept.length > 0 ? "/" : ""}`;
}

/** Returns a segment without spaces and controls around it, and without dots at its end. */
function trimmed(segment: string): string {
  if (/^\.*$/.test(segment)) return segment;
  let [start, end] = [0, segment.length];
  while (start < end && segment.charCodeAt(start) <= SPACE) start++;
  while (end > start && (segment.charCodeAt(end - 1) <= SPACE || segment[end - 1] === ".")) end--;
  return segment.slice(start, end);
}

const SPACE = 32;
