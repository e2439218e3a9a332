import { type FormEvent, useRef } from "react";
import { useLocation } from "wouter";
import styles from "../styles/shell.module.css";
import { useShortcut } from "./use-shortcut.ts";

/** Longer than every key in characters. */
const MAX_LENGTH = 255;

/** Finds what is known of a key, of keys that begin with a text, of an owner, a fingerprint or a request, from every screen. */
export function SearchBox() {
  const [, navigate] = useLocation();
  const field = useRef<HTMLInputElement>(null);
  useShortcut("/", "Search", () => field.current?.focus());

  function submit(event: FormEvent<HTMLFormElement>): void {
    event.preventDefault();
    // A key is taken as it is: spaces belong to it.
    const text = field.current?.value ?? "";
    if (text.trim() === "") return;
    event.currentTarget.reset();
    // The keys of the page work again.
    field.current?.blur();
    navigate(`/records?${new URLSearchParams({ q: text })}`);
  }

  return (
    <search className={styles.search}>
      <form onSubmit={submit}>
        <input
          ref={field}
          type="search"
          aria-label="Search records"
          placeholder="Key, owner, fingerprint or request id  /"
          maxLength={MAX_LENGTH}
          autoComplete="off"
          spellCheck={false}
        />
      </form>
    </search>
  );
}
