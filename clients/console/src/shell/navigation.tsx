import { lazy, type ReactNode, Suspense } from "react";
import { Link, useLocation } from "wouter";
import { formatCount } from "../format/quantity.ts";
import { useAmbiguousCount, useUnfinishedJobs } from "../parts/work-counts.ts";
import { linksFor } from "../routes.ts";
import { useSession } from "../session/session.ts";
import styles from "../styles/shell.module.css";

const KEY = "M9.5 6.5 14 2M12 4l1.8 1.8M10.5 9.5a3.5 3.5 0 1 1-7 0 3.5 3.5 0 0 1 7 0";

/** The icons by the path of their screen: lines in a square of 16. */
const ICONS: Readonly<Record<string, string>> = {
  "/": "M2 7.5 8 2.5l6 5M3.5 6.5v7h9v-7",
  "/tenants": "M2.5 13.5v-11h6v11M8.5 6.5h5v7M1.5 13.5h13M5 5.5h1M5 8.5h1",
  "/fleet": "M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.5M5 11h.5",
  "/refused": "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11M4.2 4.2l7.6 7.6",
  "/ambiguous": "M5.5 6a2.5 2.5 0 1 1 3.6 2.2C8.3 8.6 8 9 8 10M8 12.7v.1",
  "/jobs": "M2.5 4h11M2.5 8h7M2.5 12h5M11 9.5v4l3.2-2z",
  "/records": "M2.5 4c0-2 11-2 11 0v8c0 2-11 2-11 0zM2.5 4c0 2 11 2 11 0M2.5 8c0 2 11 2 11 0",
  "/audit": "M3.5 1.5h6l3 3v10h-9zM6 7h4M6 9.5h4M6 12h2",
  "/namespaces": "M2 13V3h4.5L8 5.5h6V13z",
  "/key-quality": "M10.2 10.2 14 14M11.5 7a4.5 4.5 0 1 1-9 0 4.5 4.5 0 0 1 9 0M5 7l1.5 1.5L9 6",
  "/operator-keys": KEY,
  "/api-keys": KEY,
  "/settings": "M2 5h5M11 5h3M9 3v4M2 11h2M8 11h6M6 9v4",
};

/** A file of its own: only operators need it. The navigation works without it, too. */
const FleetCount = lazy(() =>
  import("../screens/fleet/fleet-count.tsx").catch(() => ({ default: () => "" })),
);

/** How much waits, by the path of its screen. */
const COUNTS: Readonly<Record<string, ReactNode>> = {
  "/ambiguous": <AmbiguousCount />,
  "/jobs": <JobCount />,
  "/fleet": <FleetCount />,
};

/** The links to the role's screens, in groups by what a person comes for. */
export function Navigation() {
  const { role } = useSession();
  const [location] = useLocation();
  const links = linksFor(role);
  const groups = [...new Set(links.map(({ group }) => group))];
  return (
    <nav className={styles.navigation} aria-label="Screens">
      {groups.map((group) => (
        <section key={group} aria-label={group}>
          <p className={styles.group}>{group}</p>
          <ul>
            {links
              .filter((link) => link.group === group)
              .map(({ href, label }) => (
                <li key={href}>
                  <Link
                    href={href}
                    {...(isCurrent(href, location) && { "aria-current": "page", ref: keepInSight })}
                  >
                    <svg viewBox="0 0 16 16" aria-hidden="true">
                      <path d={ICONS[href]} />
                    </svg>
                    {label}
                    {COUNTS[href] && (
                      <span className={styles.count}>
                        <Suspense>{COUNTS[href]}</Suspense>
                      </span>
                    )}
                  </Link>
                </li>
              ))}
          </ul>
        </section>
      ))}
    </nav>
  );
}

/** Keeps a link in the middle at each width: in a narrow window the links are a line that can be longer than the window. */
function keepInSight(link: HTMLElement | null): (() => void) | undefined {
  const bar = link?.closest("nav");
  if (!link || !bar) return undefined;
  const observer = new ResizeObserver(() => {
    const [seen, own] = [bar.getBoundingClientRect(), link.getBoundingClientRect()];
    bar.scrollLeft += own.left - seen.left - (seen.width - own.width) / 2;
  });
  observer.observe(bar);
  return () => observer.disconnect();
}

/** How many records wait for a person. */
function AmbiguousCount() {
  const { namespaces } = useSession();
  const { data } = useAmbiguousCount(namespaces[0] ?? "");
  return countWords(data?.ambiguous ?? 0n, data?.isLowerBound);
}

/** How many jobs change records now. */
function JobCount() {
  return countWords(useUnfinishedJobs().data?.length ?? 0);
}

/** Returns a count of work; "" if there is none. */
function countWords(count: number | bigint, isLowerBound = false): string {
  return Number(count) === 0 ? "" : ` ${formatCount(count)}${isLowerBound ? "+" : ""}`;
}

function isCurrent(href: string, location: string): boolean {
  return location === href || (href !== "/" && location.startsWith(`${href}/`));
}
