import { useState } from "react";

/** Returns a switch that this browser remembers, and sets it. A browser that stores nothing forgets it with the page. */
export function useStoredFlag(name: string, initial: boolean): readonly [boolean, (next: boolean) => void] {
  const key = `onceward.console.${name}`;
  const [flag, setFlag] = useState(() => readFlag(key) ?? initial);
  function change(next: boolean): void {
    setFlag(next);
    try {
      localStorage.setItem(key, String(next));
    } catch {
      // The browser forbids it; the flag holds until the page is left.
    }
  }
  return [flag, change];
}

function readFlag(key: string): boolean | undefined {
  try {
    const text = localStorage.getItem(key);
    return text === null ? undefined : text === "true";
  } catch {
    return undefined;
  }
}
