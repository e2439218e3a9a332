import { useLayoutEffect, useRef } from "react";
import common from "../../styles/common.module.css";
import styles from "../../styles/parts.module.css";
import { CopyButton } from "../copy-button.tsx";

/** A key that was just created. */
export interface NewSecret {
  readonly id: string;
  readonly label: string;
  readonly secret: string;
}

/** What a form that creates a key gets. */
export interface CreateProps {
  readonly created: (secret: NewSecret) => void;
  readonly close: () => void;
}

interface SecretPanelProps {
  readonly secret: NewSecret;
  readonly hide: () => void;
}

/**
 * Shows a secret until a person hides it or leaves the screen. It hides it, too, when the browser keeps the page for its Back
 * button.
 */
export function SecretPanel({ secret: { id, label, secret }, hide }: SecretPanelProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => heading.current?.focus(), []);
  useLayoutEffect(() => {
    window.addEventListener("pagehide", hide);
    return () => window.removeEventListener("pagehide", hide);
  }, [hide]);
  return (
    <section className={`${common.card} ${styles.secret}`} data-edge="accent" aria-labelledby="new-secret">
      <h2 id="new-secret" ref={heading} tabIndex={-1}>
        The secret of key {id}
      </h2>
      <p>
        Store it now{label !== "" && <> for {<bdi>{label}</bdi>}</>}: it is shown only this once, and the
        service does not keep it.
      </p>
      <p>
        <code>{secret}</code> <CopyButton text={secret} label="Copy the secret" />
      </p>
      <button type="button" onClick={hide}>
        I have stored it: hide it
      </button>
    </section>
  );
}
