import { Component, type ReactNode } from "react";

interface State {
  readonly failed: boolean;
}

/**
 * Catches what a screen throws: a defect, or a chunk that the server no longer has because a newer version was
 * installed.
 */
export class ScreenBoundary extends Component<{ readonly children: ReactNode }, State> {
  override state: State = { failed: false };

  static getDerivedStateFromError(): State {
    return { failed: true };
  }

  override render(): ReactNode {
    if (!this.state.failed) return this.props.children;
    return (
      <>
        <h1>This screen could not be shown</h1>
        <p>A newer version of the console may have been installed since the page was opened.</p>
        <button type="button" onClick={() => window.location.reload()}>
          Load the page again
        </button>
      </>
    );
  }
}
