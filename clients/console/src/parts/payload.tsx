import { readPayload } from "@onceward/words/payload";
import { type ReactNode, useState } from "react";
import { formatSize } from "../format/quantity.ts";
import common from "../styles/common.module.css";
import styles from "../styles/parts.module.css";
import { CopyButton } from "./copy-button.tsx";

interface PayloadProps {
  readonly bytes: Uint8Array;
  /** What the bytes are, such as "the result". */
  readonly name: string;
  readonly contentType?: string;
}

/**
 * Shows stored bytes when a person asks for them, because they can be confidential: the first 64 KiB, only ever as
 * text, whichever media type they claim.
 */
export function Payload({ bytes, name, contentType = "" }: PayloadProps) {
  const about = [formatSize(bytes.length), contentType].filter((part) => part !== "").join(", ");
  if (bytes.length === 0) return <span>Empty</span>;
  return (
    <Hidden name={name} about={about}>
      <PayloadText bytes={bytes} name={name} />
    </Hidden>
  );
}

interface HiddenProps {
  /** What is hidden, such as "the result". */
  readonly name: string;
  /** What is known without it, such as its size. */
  readonly about: string;
  readonly children: ReactNode;
}

/** Shows its children when a person asks for them. */
export function Hidden({ name, about, children }: HiddenProps) {
  const [isShown, setShown] = useState(false);
  return (
    <div>
      <button type="button" aria-expanded={isShown} onClick={() => setShown(!isShown)}>
        {isShown ? `Hide ${name}` : `Show ${name}`}
      </button>{" "}
      <span>{about}</span>
      {isShown && children}
    </div>
  );
}

function PayloadText({ bytes, name }: { readonly bytes: Uint8Array; readonly name: string }) {
  const { form, text, hiddenBytes } = readPayload(bytes);
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reached by the keyboard. */}
      <pre className={`${common.text} ${styles.wrapped}`} tabIndex={0}>
        {text}
      </pre>
      <p>
        {form === "hex" && "Not text: shown as hexadecimal bytes. "}
        {hiddenBytes > 0 && `${formatSize(hiddenBytes)} more are not shown. `}
        <CopyButton text={text} label={`Copy ${name}`} />
      </p>
    </>
  );
}
