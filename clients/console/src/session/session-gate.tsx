import { useQuery } from "@connectrpc/connect-query";
import { IdentityService } from "@onceward/gen/onceward/v1/identity_pb.ts";
import { type ReactNode, useEffect } from "react";
import { Redirect, useLocation, useSearch } from "wouter";
import { Unanswered } from "../parts/list-states.tsx";
import { EmptyFrame } from "../shell/frame.tsx";
import { SUSPENDED, useConnection } from "./connection.ts";
import { signInPath } from "./return-path.ts";
import { noteSignedIn, type Session, SessionContext, sessionOf } from "./session.ts";
import { type SessionEnd, useSessionEnd } from "./session-end.ts";

/** Often enough that a page that only lies open learns within a minute that its session has ended. */
const CHECK_MS = 60_000;

/** Shows `children` to a person who is signed in, and leads everyone else to the sign-in page. */
export function SessionGate({ children }: { readonly children: ReactNode }) {
  const [location] = useLocation();
  const search = useSearch();
  const end = useSessionEnd();
  const { connection } = useConnection();
  const identity = useQuery(
    IdentityService.method.whoAmI,
    {},
    { enabled: end === undefined, staleTime: CHECK_MS, refetchInterval: CHECK_MS },
  );
  const session = identity.data === undefined ? undefined : sessionOf(identity.data);
  const isSignedIn = identity.data && session !== undefined;
  useEffect(() => {
    if (isSignedIn !== undefined) noteSignedIn(isSignedIn);
  }, [isSignedIn]);
  if (end !== undefined || (identity.data !== undefined && session === undefined)) {
    return (
      <Redirect
        to={signInPath(search === "" ? location : `${location}?${search}`, reasonOf(end, session))}
        replace
      />
    );
  }
  if (session !== undefined) return <SessionContext value={session}>{children}</SessionContext>;
  return (
    <EmptyFrame>
      {identity.error === null ? (
        <p>Waiting for the server…</p>
      ) : (
        <h1>{connection === "suspended" ? SUSPENDED : "The page could not be loaded"}</h1>
      )}
      <Unanswered query={identity} rows={8} />
    </EmptyFrame>
  );
}

/** Returns what the sign-in page says. A first visit has not lost a session: the form alone says enough. */
function reasonOf(end: SessionEnd | undefined, session: Session | undefined): SessionEnd | undefined {
  if (end !== "NO_SESSION") return end;
  // The browser has dropped the cookie, whose time was over.
  return session === undefined ? undefined : "SESSION_ENDED";
}
