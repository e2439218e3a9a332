import { TransportProvider } from "@connectrpc/connect-query";
import { QueryClientProvider } from "@tanstack/react-query";
import { Route, Router, Switch } from "wouter";
import { ANY_PATH } from "./routes.ts";
import { createQueryClient } from "./session/query-client.ts";
import { SessionGate } from "./session/session-gate.tsx";
import { SignIn } from "./session/sign-in.tsx";
import { createTransport } from "./session/transport.ts";
import { ConnectionBanner } from "./shell/connection-banner.tsx";
import { Shell } from "./shell/shell.tsx";

const transport = createTransport();
const queryClient = createQueryClient();

/** The whole page: the sign-in page, or, with a session, the shell with a screen. */
export function App() {
  return (
    <TransportProvider transport={transport}>
      <QueryClientProvider client={queryClient}>
        <Router base="/console">
          <Switch>
            <Route path="/sign-in">
              <SignIn />
            </Route>
            <Route path={ANY_PATH}>
              <ConnectionBanner />
              <SessionGate>
                <Shell />
              </SessionGate>
            </Route>
          </Switch>
        </Router>
      </QueryClientProvider>
    </TransportProvider>
  );
}
