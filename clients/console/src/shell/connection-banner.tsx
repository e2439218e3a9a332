import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { TimeText } from "../parts/time.tsx";
import { changeConnection, useConnection } from "../session/connection.ts";
import { fetchSignInOptions } from "../session/session-api.ts";
import styles from "../styles/shell.module.css";

/** Long enough for a server that starts, short enough that a person sees that it is back. */
const RETRY_MS = 5_000;

/** Says why the page does not show the present, and reads everything again when it can. */
export function ConnectionBanner() {
  const { connection, since } = useConnection();
  const queryClient = useQueryClient();
  useEffect(() => {
    if (connection === "answering") return undefined;
    const retry = connection === "unreachable" ? probe : () => refetchFailed(queryClient);
    const timer = setInterval(() => void retry(), RETRY_MS);
    return () => {
      clearInterval(timer);
      void queryClient.invalidateQueries();
    };
  }, [connection, queryClient]);
  return (
    <div role="status">
      {connection !== "answering" && (
        <p className={styles.banner}>
          {connection === "unreachable"
            ? "The server does not answer. The page tries again automatically. What it shows is from before "
            : "The tenant is suspended: its calls are refused until an operator resumes it. What the page shows is from before "}
          <TimeText at={since} form="absolute" />.
        </p>
      )}
    </div>
  );
}

async function probe(): Promise<void> {
  await fetchSignInOptions().then(
    () => changeConnection("answering"),
    () => {},
  );
}

async function refetchFailed(queryClient: QueryClient): Promise<void> {
  await queryClient.refetchQueries({ type: "active", predicate: ({ state }) => state.error !== null });
}
