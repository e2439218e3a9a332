import type { ReactNode } from "react";
import { formatDuration } from "../format/duration.ts";
import { type Failure, readFailure } from "../session/failure.ts";
import { ROLE_WORDS, type Role, useSession } from "../session/session.ts";
import common from "../styles/common.module.css";
import styles from "../styles/parts.module.css";
import { CliHint } from "./copy-button.tsx";

/** Shows that there is nothing, why, and the command that does the same. */
export function Empty({ children, command }: { readonly children: ReactNode; readonly command?: string }) {
  return (
    <div className={styles.empty}>
      <p>{children}</p>
      {command !== undefined && <CliHint command={command} />}
    </div>
  );
}

/** Keeps the room of `rows` rows of a table, so that nothing moves when they arrive. */
export function Loading({ rows }: { readonly rows: number }) {
  return (
    <div className={styles.loading} role="status" aria-label="Loading" aria-busy="true">
      {Array.from({ length: rows }, (_, row) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the rows are all the same.
        <div key={row} />
      ))}
    </div>
  );
}

interface UnansweredProps {
  readonly query: { readonly error: Error | null; readonly refetch: () => unknown };
  readonly rows: number;
}

/** Shows that a question has no answer yet, in the room of `rows` rows, or why it was not answered. */
export function Unanswered({ query, rows }: UnansweredProps) {
  if (query.error === null) return <Loading rows={rows} />;
  return <ErrorState error={query.error} retry={query.refetch} />;
}

/**
 * Shows why a call failed: the reason, the request's id in the server's log, and a button that repeats it. A call
 * that the session may not make is shown as `Denied`.
 */
export function ErrorState({ error, retry }: { readonly error: unknown; readonly retry?: () => unknown }) {
  const failure = readFailure(error);
  if (failure.reason === "ROLE_DENIED") return <Denied />;
  if (failure.reason === "NAMESPACE_DENIED") return <NamespaceDenied failure={failure} />;
  return (
    <div className={styles.error} role="alert">
      <FailureText failure={failure} />
      {retry !== undefined && (
        <button type="button" onClick={() => void retry()}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Keeps the place where a screen reader says why an action failed; `error` is undefined while it has not. */
export function ActionError({ error }: { readonly error: unknown }) {
  return (
    <div role="alert" className={common.problem}>
      {error !== undefined && <FailureText failure={readFailure(error)} />}
    </div>
  );
}

/** Writes what a failure says. */
export function FailureText({ failure }: { readonly failure: Failure }) {
  const { message, reason, requestId, violations, retryDelayMs } = failure;
  return (
    <>
      <p>
        {message}
        {reason !== "" && (
          <>
            {" "}
            (<code>{reason}</code>)
          </>
        )}
        {retryDelayMs !== undefined && ` A retry can succeed in ${formatDuration(retryDelayMs)}.`}
      </p>
      {violations.length > 0 && (
        <ul>
          {violations.map(({ field, description }) => (
            <li key={`${field} ${description}`}>
              <code>{field}</code>: {description}
            </li>
          ))}
        </ul>
      )}
      {requestId !== undefined && (
        <p className={common.quiet}>
          Request <code>{requestId}</code>
        </p>
      )}
    </>
  );
}

/** Shows which role a screen needs. Undefined: the server did not say which. */
export function Denied({ neededRole }: { readonly neededRole?: Role }) {
  const { role } = useSession();
  return (
    <Empty command="onceward whoami">
      {neededRole === undefined
        ? "Your role may not see this"
        : `This needs the role ${ROLE_WORDS[neededRole]}`}
      ; yours is {ROLE_WORDS[role]}. Sign out, and sign in with another key.
    </Empty>
  );
}

function NamespaceDenied({ failure }: { readonly failure: Failure }) {
  const { namespaces } = useSession();
  const { namespace } = failure.metadata;
  return (
    <Empty>
      {namespace === undefined
        ? "This concerns the whole tenant, and your key is limited to namespaces."
        : `Your key is not valid for the namespace ${namespace}.`}{" "}
      It is valid for: {namespaces.join(", ")}.
    </Empty>
  );
}
