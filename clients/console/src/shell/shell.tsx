import { Suspense } from "react";
import { Link, Redirect, Route, Switch } from "wouter";
import { Denied, Loading } from "../parts/list-states.tsx";
import { NoticeProvider } from "../parts/notice.tsx";
import { ANY_PATH, missingRole, ROUTES, type ScreenRoute } from "../routes.ts";
import { useSession } from "../session/session.ts";
import styles from "../styles/shell.module.css";
import { Header } from "./header.tsx";
import { Navigation } from "./navigation.tsx";
import { Screen } from "./screen.tsx";
import { ScreenBoundary } from "./screen-boundary.tsx";

/** The frame around every screen: header, navigation, and the screen of the address. */
export function Shell() {
  return (
    <NoticeProvider>
      <a className={styles.skip} href="#content">
        Skip to the content
      </a>
      <Header />
      <div className={styles.body}>
        <Navigation />
        <main id="content" className={styles.content} tabIndex={-1}>
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
  if (role === "CALLER") {
    return (
      <Screen
        title="This key is for services"
        answer="A caller's key claims and completes; the console is for administrators."
        lead="Sign out, and sign in with an administrator's key: npm start writes it to .onceward/admin.key, and an administrator creates more under API keys."
      >
        {undefined}
      </Screen>
    );
  }
  const missing = missingRole(route.audience, role);
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
        <route.screen />
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
