import type { ReactNode } from "react";
import { UserText } from "./user-text.tsx";

/** A list of what is known: values by their names. Those that are false or undefined are skipped. */
export function Facts({ of }: { readonly of: Readonly<Record<string, ReactNode>> }) {
  return (
    <dl>
      {Object.entries(of).map(
        ([name, value]) =>
          value !== undefined &&
          value !== false && (
            <div key={name}>
              <dt>
                <UserText>{name}</UserText>
              </dt>
              <dd>{value}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
