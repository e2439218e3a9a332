import { lazy, Suspense } from "react";
import { Link, Redirect, Route, Switch } from "wouter";
import { Denied, Loading } from "../parts/list-states.tsx";
import { NoticeProvider } from "../parts/notice.tsx";
import { ANY_PATH, missingRole, ROUTES, type ScreenRoute } from "../routes.ts";
import { useConnection } from "../session/connection.ts";
import { useSession } from "../session/session.ts";
import styles from "../styles/shell.module.css";
import { Header } from "./header.tsx";
import { Navigation } from "./navigation.tsx";
import { Screen } from "./screen.tsx";
import { ScreenBoundary } from "./screen-boundary.tsx";
import { Shortcuts } from "./shortcuts.tsx";

const CallersPage = lazy(() => import("../screens/caller/caller.tsx"));

/** The frame around every screen: header, navigation, and the screen of the address. A caller's key has a page instead. */
export function Shell() {
  const { role } = useSession();
  const { connection } = useConnection();
  return (
    <NoticeProvider>
      <a className={styles.skip} href="#content">
        Skip to the content
      </a>
      <Header />
      <Shortcuts />
      <div className={styles.body}>
        {role !== "CALLER" && <Navigation />}
        <main
          id="content"
          className={styles.content}
          data-stale={connection === "answering" ? undefined : "true"}
          tabIndex={-1}
        >
          <Switch>
            {ROUTES.map((route) => (
              <Route key={route.path} path={route.path}>
                <RoutedScreen route={route} />
              </Route>
            ))}
            <Route path={ANY_PATH}>
              <NotFound />
            </Route>
          </Switch>
        </main>
      </div>
    </NoticeProvider>
  );
}

function RoutedScreen({ route }: { readonly route: ScreenRoute }) {
  const { role } = useSession();
  const isCaller = role === "CALLER";
  const Shown = isCaller ? CallersPage : route.screen;
  const missing = isCaller ? undefined : missingRole(route.audience, role);
  if (route.path === "/" && role === "OPERATOR") return <Redirect to="/tenants" replace />;
  if (missing !== undefined) {
    return (
      <Screen title={route.link?.label ?? "Not allowed"}>
        <Denied neededRole={missing} />
      </Screen>
    );
  }
  return (
    <ScreenBoundary key={route.path}>
      <Suspense fallback={<Loading rows={8} />}>
        <Shown />
      </Suspense>
    </ScreenBoundary>
  );
}

/** The screen of an unknown address. */
function NotFound() {
  return (
    <Screen title="Not found">
      <p>
        There is no such page. <Link href="/">Go to the start</Link>.
      </p>
    </Screen>
  );
}
