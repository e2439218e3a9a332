import { Component, type ReactNode, useEffect, useRef } from "react";
import { changeConnection, useConnection } from "../session/connection.ts";
import { fetchSignInOptions } from "../session/session-api.ts";

interface State {
  readonly failed: "no" | "chunk" | "defect";
}

/** The words of browsers and of the bundler for a file that cannot be loaded; they have no type of error for it. */
const CHUNK_ERROR = /dynamically imported module|importing a module script|unable to preload css/i;

/** Catches what a screen throws: a defect, or that the server did not send the screen. */
export class ScreenBoundary extends Component<{ readonly children: ReactNode }, State> {
  override state: State = { failed: "no" };

  static getDerivedStateFromError(error: unknown): State {
    return { failed: error instanceof Error && CHUNK_ERROR.test(error.message) ? "chunk" : "defect" };
  }

  override render(): ReactNode {
    switch (this.state.failed) {
      case "no":
        return this.props.children;
      case "chunk":
        return <NotLoaded />;
      case "defect":
        return <NotShown>The console has a defect here. What you typed on this screen is lost.</NotShown>;
      default:
        return this.state.failed satisfies never;
    }
  }
}

/**
 * Loads the page once more when a server that was down answers again. A browser keeps the failure of a module until then. A server
 * that answers no longer has the screen's file.
 */
function NotLoaded() {
  const { connection } = useConnection();
  const isAway = connection === "unreachable";
  const wasAway = useRef(false);
  useEffect(() => {
    if (isAway) wasAway.current = true;
    else if (wasAway.current) window.location.reload();
    else fetchSignInOptions().catch(() => changeConnection("unreachable"));
  }, [isAway]);
  return (
    <NotShown>
      {isAway
        ? "The server does not answer. The screen is shown as soon as it does."
        : "A newer version of the console was installed since the page was opened."}
    </NotShown>
  );
}

function NotShown({ children }: { readonly children: string }) {
  return (
    <>
      <h1>This screen could not be shown</h1>
      <p>{children}</p>
      <button type="button" onClick={() => window.location.reload()}>
        Load the page again
      </button>
    </>
  );
}
