/** Says something to whoever runs the process: a warning of type OncewardWarning, or a line of the console in a browser. */
export function warn(message: string, code: string): void {
  if (globalThis.process?.emitWarning !== undefined) {
    process.emitWarning(message, { type: "OncewardWarning", code });
  } else {
    // biome-ignore lint/suspicious/noConsole: there is no other place in a browser.
    console.warn(`[${code}] OncewardWarning: ${message}`);
  }
}
